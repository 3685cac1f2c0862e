-- What followers and the results' pages ask for again and again is found by an index, and a machine can be forgotten.

-- Events of a submission and of its runs and blocks, in order, without looking at every run.
alter table event add column submission_id bigint;
update event e set submission_id = case
    when e.subject ~ '^submission/[0-9]+$' then split_part(e.subject, '/', 2)::bigint
    when e.subject ~ '^run/[0-9]+$' then (select submission_id from run where id = split_part(e.subject, '/', 2)::bigint)
    when e.subject ~ '^block/[0-9]+$' then (select submission_id from block where id = split_part(e.subject, '/', 2)::bigint)
end;
create index event_by_submission on event (submission_id, id) where submission_id is not null;

create index cell_by_place on cell (submission_id, ordinal);

-- Counting runs by state needs no row of them.
create index run_counting on run (submission_id, state, verdict);

-- A forgotten machine keeps its row, for the history of its runs; its name may be taken anew.
alter table machine add column forgotten_at timestamptz;
alter table machine drop constraint machine_name_key;
create unique index machine_by_name on machine (name) where forgotten_at is null;
