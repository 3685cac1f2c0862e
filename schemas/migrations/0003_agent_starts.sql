-- The random id of each start of a machine's agent, as its first hello said. A hello that names another for an epoch is
-- of an agent that shares the state directory or has a copy of it: it is refused, so that records never mix.
create table agent_start (
    machine_id bigint not null references machine,
    epoch      bigint not null,
    start_id   text not null,                            -- 32 hex digits; empty: that start's spool didn't say
    first_seen timestamptz not null default now(),
    primary key (machine_id, epoch)
);
