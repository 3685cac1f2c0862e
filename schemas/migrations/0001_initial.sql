-- The first shape of the database. Migrations are numbered, immutable once landed, and checksummed (common words:
-- README, "Words"). Times are timestamptz from the database's clock unless a column says otherwise; nanoseconds are
-- an agent's CLOCK_MONOTONIC, tied to UTC by the anchors in table phase.

create table machine (
    id            bigint generated always as identity primary key,
    name          text not null unique check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    labels        jsonb not null default '{}',
    profile       jsonb not null default '{}',          -- the agent's own copy rules; this one is for planning
    state         text not null default 'enrolling'
                  check (state in ('enrolling','idle','held','draining','leased','restoring','unreachable','quarantined')),
    state_reason  text not null default '',
    previous_state text not null default 'idle',         -- what an unreachable machine returns to after a clean hello
    boot_id       text not null default '',
    agent_epoch   bigint not null default 0,
    agent_version text not null default '',
    metrics_url   text not null default '',              -- where Prometheus may scrape the agent
    clock_offset_ns       bigint,                        -- agent's UTC minus the controller's, from heartbeats
    clock_offset_error_ns bigint,                        -- half the round trip
    last_seen     timestamptz,
    created_at    timestamptz not null default now()
);

-- Only hashes (SHA-256, hex) of tokens are stored. kind: user (REST), agent (bound to one machine), join (may enrol
-- machines), scrape (/metrics and http_sd alone).
create table token (
    hash       text primary key,
    kind       text not null check (kind in ('user','agent','join','scrape')),
    label      text not null default '',
    machine_id bigint references machine,
    created_at timestamptz not null default now(),
    revoked_at timestamptz,
    check ((kind = 'agent') = (machine_id is not null))
);

create table environment (
    id          bigint generated always as identity primary key,
    machine_id  bigint not null references machine,
    boot_id     text not null,
    taken_at    timestamptz not null,
    fingerprint text not null,                           -- SHA-256 of facts' canonical text
    facts       jsonb not null,
    raw         jsonb not null default '{}',
    unique (machine_id, boot_id, fingerprint)
);

alter table machine add column environment_id bigint references environment; -- taken at the last hello

create table experiment (
    id         bigint generated always as identity primary key,
    name       text not null unique,
    created_at timestamptz not null default now()
);

create table submission (
    id              bigint generated always as identity primary key,
    experiment_id   bigint not null references experiment,
    source          text not null default '',            -- who queued it: cli, jenkins, a person's word
    definition      text not null,                       -- the file as sent, byte for byte
    definition_sha  text not null,
    plan            jsonb not null,                      -- the expanded plan's summary: cells, order, expected time
    idempotency_token text,                              -- hash of the token that sent the key
    idempotency_key   text,
    idempotency_sha   text,                              -- of the request: the key stands for this one and no other
    priority        int not null default 0,              -- larger first
    seed            bigint not null default 0,
    machine_name    text,                                -- asked for by name; null: any that has the labels
    machine_labels  jsonb not null default '{}',
    state           text not null default 'queued' check (state in ('queued','running','completed','failed','cancelled')),
    reason          text not null default '',
    cancel_requested boolean not null default false,
    created_at      timestamptz not null default now(),
    ended_at        timestamptz,
    unique (idempotency_token, idempotency_key)
);
create index submission_by_state on submission (state, priority desc, id);

create table cell (
    id            bigint generated always as identity primary key,
    submission_id bigint not null references submission,
    ordinal       int not null,                          -- in the order of the factors' levels
    cell_key      text not null,                         -- hash of the levels alone
    levels        jsonb not null,                        -- factor -> level, as text
    unique (submission_id, cell_key)
);
create index cell_by_key on cell (cell_key);

create table block (
    id            bigint generated always as identity primary key,
    submission_id bigint not null references submission,
    ordinal       int not null,
    boot_state    jsonb not null default '{}',           -- kernel arguments that the boot must have
    state         text not null default 'pending' check (state in ('pending','granted','active','releasing','done','refused','cancelled')),
    reason        text not null default '',
    unique (submission_id, ordinal)
);
create index block_pending on block (submission_id, ordinal) where state = 'pending';

-- The exclusive right of one block to one machine. The fencing token only grows; its history is in event.
create sequence fencing_token;
create table lease (
    machine_id bigint primary key references machine,
    block_id   bigint not null references block,
    token      bigint not null,
    state      text not null default 'granted' check (state in ('granted','active','silent','releasing')),
    renew_by   timestamptz not null
);

create table run (
    id          bigint generated always as identity primary key,
    block_id    bigint not null references block,
    cell_id     bigint not null references cell,
    submission_id bigint not null references submission,
    machine_id  bigint references machine,               -- null until its block is granted
    position    int not null,                            -- order within the block; retries come right behind
    replicate   int not null,
    attempt     int not null default 1,
    retry_of    bigint references run,
    state       text not null default 'planned'
                check (state in ('planned','assigned','preparing','warming','measuring','stopping','uploading',
                                 'completed','refused','failed','cancelled','interrupted')),
    reason      text not null default '',
    deadline    timestamptz,
    resolved    jsonb not null,                          -- immutable: everything the agent is told
    resolved_sha text not null,
    verdict     text not null default 'unreviewed' check (verdict in ('unreviewed','trusted','suspect','void')),
    sealed_at   timestamptz,
    started_at  timestamptz,
    ended_at    timestamptz,
    unique (cell_id, replicate, attempt)
);
create index run_by_block on run (block_id, position, attempt);
create index run_by_submission on run (submission_id, id);
create index run_by_cell on run (cell_id);
create index run_unsealed on run (id) where sealed_at is null and state in ('completed','refused','failed','cancelled','interrupted');
create index run_open on run (deadline) where state not in ('completed','refused','failed','cancelled','interrupted');

create table run_machine (
    run_id             bigint not null references run,
    machine_id         bigint not null references machine,
    roles              jsonb not null,                   -- role -> cpulist granted
    environment_before bigint references environment,
    environment_after  bigint references environment,
    primary key (run_id, machine_id)
);

create table process (
    run_id        bigint not null references run,
    machine_id    bigint not null references machine,
    ordinal       int not null,
    role          text not null,
    name          text not null,                         -- service or tool
    phase         text not null,                         -- the phase that started it
    pid           int not null,
    granted_cpus  text not null,
    observed_cpus text not null default '',              -- union over its threads, as the kernel said during measure
    observed_nodes text not null default '',
    speculation   jsonb not null default '{}',           -- asked, read back
    cgroup        text not null default '',
    started_ns    bigint not null,
    ended_ns      bigint,
    exit          text not null default '',              -- "0", "exit 3", "signal 9 (Killed)"
    primary key (run_id, machine_id, ordinal)
);

create table phase (
    run_id     bigint not null references run,
    machine_id bigint not null references machine,
    ordinal    int not null,
    name       text not null check (name in ('fetch','build','start','ready','warm_up','pause','measure','stop')),
    start_ns   bigint not null,
    end_ns     bigint,
    utc_anchor_ns    bigint not null,                    -- UTC nanoseconds at anchor_ns
    anchor_ns        bigint not null,
    anchor_error_ns  bigint not null,
    primary key (run_id, machine_id, ordinal)
);

-- source: tool (as the tool reported), derived (by analysis), collector.
create table metric (
    run_id      bigint not null references run,
    name        text not null,
    labels_hash text not null,
    labels      jsonb not null default '{}',
    unit        text not null,
    value       double precision,                        -- null: the tool printed a placeholder
    histogram   bytea,
    window_start_ns bigint,
    window_end_ns   bigint,
    source      text not null,
    status      text not null default 'ok',              -- reading status of what it was read from
    primary key (run_id, name, labels_hash)
);

create table artifact (
    id         bigint generated always as identity primary key,
    run_id     bigint not null references run,
    machine_id bigint not null references machine,
    name       text not null,
    sha256     text not null,
    size       bigint not null,
    complete   boolean not null default false,           -- all its bytes are in blob
    unique (run_id, machine_id, name)
);
create table blob (
    sha256 text not null,
    part   int not null,                                 -- 1 MiB each but the last
    bytes  bytea not null,
    primary key (sha256, part)
);

-- What came so far of an artifact that is not complete; moved to blob when its hash is right.
create table upload_part (
    artifact_id bigint not null references artifact,
    start       bigint not null,                         -- bytes before it
    bytes       bytea not null,
    primary key (artifact_id, start)
);

create table finding (
    id         bigint generated always as identity primary key,
    run_id     bigint references run,
    block_id   bigint references block,
    machine_id bigint references machine,
    check_name text not null,
    version    int not null default 1,
    severity   text not null check (severity in ('info','warning','void')),
    subject    text not null,
    message    text not null,
    evidence   jsonb not null default '{}',
    source     text not null default 'agent' check (source in ('agent','analysis','controller'))
);
create index finding_by_run on finding (run_id);         -- source analysis: made anew at each evaluation

create table change (
    machine_id bigint not null references machine,
    boot_id    text not null,
    ordinal    bigint not null,
    scope      text not null,
    key        text not null,
    old        text,
    wanted     text,
    read_back  text,
    restored_at timestamptz,
    primary key (machine_id, boot_id, ordinal)
);

create table series (
    run_id     bigint not null references run,
    id         int not null,                             -- given by the agent, unique within the run and machine
    machine_id bigint not null references machine,
    name       text not null,                            -- cpu_user_seconds, thread_run_queue_wait_seconds, ...
    unit       text not null,
    kind       text not null check (kind in ('counter','gauge')),
    labels     jsonb not null default '{}',
    primary key (run_id, machine_id, id)
);

-- Samples of a finished run: at most 4,096 points a chunk, arrays of equal length.
create table series_chunk (
    run_id     bigint not null,
    machine_id bigint not null,
    series_id  int not null,
    start_ns   bigint not null,
    offsets_ns bigint[] not null,                        -- from start_ns; the first is 0
    values     double precision[] not null,
    primary key (run_id, machine_id, series_id, start_ns)
) partition by range (run_id);

-- Samples of a living run: one row a flush, in the agent's own binary format (common/protocol/sample_frame.hpp).
create table live_frame (
    run_id     bigint not null,
    machine_id bigint not null,
    epoch      bigint not null,
    seq        bigint not null,
    bytes      bytea not null,
    primary key (run_id, machine_id, epoch, seq)
) partition by range (run_id);

-- lz4 decompresses several times faster than the default; a server built without it keeps the default.
do $$
begin
    alter table series_chunk alter column offsets_ns set compression lz4;
    alter table series_chunk alter column values set compression lz4;
exception when feature_not_supported then
    raise notice 'this server has no lz4: samples are compressed by pglz';
end $$;

-- The last record of an agent's spool that is stored; advanced in the transaction that stores it.
create table ingest_cursor (
    machine_id bigint not null references machine,
    epoch      bigint not null,
    stream     int not null,
    last_seq   bigint not null,
    primary key (machine_id, epoch, stream)
);

create table event (
    id      bigint generated always as identity primary key,
    at      timestamptz not null default now(),
    actor   text not null,
    subject text not null,                               -- "run/12", "machine/xeon", "submission/3"
    what    text not null,
    detail  jsonb not null default '{}'
);
create index event_by_subject on event (subject, id);

-- Views for analysts: plain rows. ------------------------------------------------------------------------------

-- One row a run, with the words that people use.
create view run_overview as
select r.id as run_id, e.name as experiment, s.id as submission_id, c.levels, r.replicate, r.attempt, r.state, r.reason,
       r.verdict, m.name as machine, r.started_at, r.ended_at, r.resolved_sha
from run r join submission s on s.id = r.submission_id join experiment e on e.id = s.experiment_id
     join cell c on c.id = r.cell_id left join machine m on m.id = r.machine_id;

-- One row a metric of a run.
create view run_metric as
select o.*, mt.name as metric, mt.labels as metric_labels, mt.unit, mt.value, mt.source, mt.status
from run_overview o join metric mt on mt.run_id = o.run_id;

-- One row a sample of a sealed run; utc is derived from the run's first clock anchor.
create view sample as
select k.run_id, m.name as machine, s.name as series, s.unit, s.kind, s.labels,
       k.start_ns + p.offset_ns as monotonic_ns,
       timestamptz 'epoch' + ((a.utc_anchor_ns + (k.start_ns + p.offset_ns - a.anchor_ns)) / 1000.0) * interval '1 microsecond' as utc,
       p.value
from series_chunk k
     join series s on s.run_id = k.run_id and s.machine_id = k.machine_id and s.id = k.series_id
     join machine m on m.id = k.machine_id
     left join lateral (select utc_anchor_ns, anchor_ns from phase p
                        where p.run_id = k.run_id and p.machine_id = k.machine_id order by ordinal limit 1) a on true
     cross join lateral unnest(k.offsets_ns, k.values) as p(offset_ns, value);
