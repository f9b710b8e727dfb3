//! Names and columns of the system relations, as in PostgreSQL 18.
//!
//! Columns are `name:type` with the type's OID. Types that Allcore does not have read as text
//! (expression trees) or text[] (access lists), which is how clients read them.

/// A system relation: its name, OID, whether it is a view, and its columns.
pub(super) struct Definition {
    pub(super) name: &'static str,
    pub(super) oid: u32,
    pub(super) view: bool,
    pub(super) columns: &'static str,
}

const fn table(name: &'static str, oid: u32, columns: &'static str) -> Definition {
    Definition { name, oid, view: false, columns }
}

const fn view(name: &'static str, oid: u32, columns: &'static str) -> Definition {
    Definition { name, oid, view: true, columns }
}

/// The relations of pg_catalog.
pub(super) static PG_CATALOG: &[Definition] = &[
    table(
        "pg_class",
        1259,
        "oid:26 relname:19 relnamespace:26 reltype:26 reloftype:26 relowner:26 relam:26 relfilenode:26 \
         reltablespace:26 relpages:23 reltuples:700 relallvisible:23 relallfrozen:23 reltoastrelid:26 \
         relhasindex:16 relisshared:16 relpersistence:18 relkind:18 relnatts:21 relchecks:21 \
         relhasrules:16 relhastriggers:16 relhassubclass:16 relrowsecurity:16 relforcerowsecurity:16 \
         relispopulated:16 relreplident:18 relispartition:16 relrewrite:26 relfrozenxid:28 relminmxid:28 \
         relacl:1009 reloptions:1009 relpartbound:25",
    ),
    table("pg_namespace", 2615, "oid:26 nspname:19 nspowner:26 nspacl:1009"),
    table(
        "pg_attribute",
        1249,
        "attrelid:26 attname:19 atttypid:26 attlen:21 attnum:21 atttypmod:23 attndims:21 attbyval:16 \
         attalign:18 attstorage:18 attcompression:18 attnotnull:16 atthasdef:16 atthasmissing:16 \
         attidentity:18 attgenerated:18 attisdropped:16 attislocal:16 attinhcount:21 attcollation:26 \
         attstattarget:21 attacl:1009 attoptions:1009 attfdwoptions:1009 attmissingval:1009",
    ),
    table(
        "pg_type",
        1247,
        "oid:26 typname:19 typnamespace:26 typowner:26 typlen:21 typbyval:16 typtype:18 typcategory:18 \
         typispreferred:16 typisdefined:16 typdelim:18 typrelid:26 typsubscript:24 typelem:26 typarray:26 \
         typinput:24 typoutput:24 typreceive:24 typsend:24 typmodin:24 typmodout:24 typanalyze:24 \
         typalign:18 typstorage:18 typnotnull:16 typbasetype:26 typtypmod:23 typndims:23 typcollation:26 \
         typdefaultbin:25 typdefault:25 typacl:1009",
    ),
    table(
        "pg_index",
        2610,
        "indexrelid:26 indrelid:26 indnatts:21 indnkeyatts:21 indisunique:16 indnullsnotdistinct:16 \
         indisprimary:16 indisexclusion:16 indimmediate:16 indisclustered:16 indisvalid:16 \
         indcheckxmin:16 indisready:16 indislive:16 indisreplident:16 indkey:22 indcollation:30 \
         indclass:30 indoption:22 indexprs:25 indpred:25",
    ),
    table(
        "pg_constraint",
        2606,
        "oid:26 conname:19 connamespace:26 contype:18 condeferrable:16 condeferred:16 conenforced:16 \
         convalidated:16 conrelid:26 contypid:26 conindid:26 conparentid:26 confrelid:26 confupdtype:18 \
         confdeltype:18 confmatchtype:18 conislocal:16 coninhcount:21 connoinherit:16 conperiod:16 \
         conkey:1005 confkey:1005 conpfeqop:1028 conppeqop:1028 conffeqop:1028 confdelsetcols:1005 \
         conexclop:1028 conbin:25",
    ),
    table(
        "pg_database",
        1262,
        "oid:26 datname:19 datdba:26 encoding:23 datlocprovider:18 datistemplate:16 datallowconn:16 \
         dathasloginevt:16 datconnlimit:23 datfrozenxid:28 datminmxid:28 dattablespace:26 datcollate:25 \
         datctype:25 datlocale:25 daticurules:25 datcollversion:25 datacl:1009 daticulocale:25",
    ),
    table(
        "pg_authid",
        1260,
        "oid:26 rolname:19 rolsuper:16 rolinherit:16 rolcreaterole:16 rolcreatedb:16 rolcanlogin:16 \
         rolreplication:16 rolbypassrls:16 rolconnlimit:23 rolpassword:25 rolvaliduntil:1184",
    ),
    view(
        "pg_roles",
        12_000,
        "rolname:19 rolsuper:16 rolinherit:16 rolcreaterole:16 rolcreatedb:16 rolcanlogin:16 \
         rolreplication:16 rolconnlimit:23 rolpassword:25 rolvaliduntil:1184 rolbypassrls:16 \
         rolconfig:1009 oid:26",
    ),
    view(
        "pg_user",
        12_001,
        "usename:19 usesysid:26 usecreatedb:16 usesuper:16 userepl:16 usebypassrls:16 passwd:25 \
         valuntil:1184 useconfig:1009",
    ),
    view(
        "pg_shadow",
        12_002,
        "usename:19 usesysid:26 usecreatedb:16 usesuper:16 userepl:16 usebypassrls:16 passwd:25 \
         valuntil:1184 useconfig:1009",
    ),
    view("pg_group", 12_003, "groname:19 grosysid:26 grolist:1028"),
    table(
        "pg_auth_members",
        1261,
        "oid:26 roleid:26 member:26 grantor:26 admin_option:16 inherit_option:16 set_option:16",
    ),
    table("pg_attrdef", 2604, "oid:26 adrelid:26 adnum:21 adbin:25"),
    table("pg_am", 2601, "oid:26 amname:19 amhandler:24 amtype:18"),
    table(
        "pg_collation",
        3456,
        "oid:26 collname:19 collnamespace:26 collowner:26 collprovider:18 collisdeterministic:16 \
         collencoding:23 collcollate:25 collctype:25 colllocale:25 collicurules:25 collversion:25",
    ),
    table("pg_description", 2609, "objoid:26 classoid:26 objsubid:23 description:25"),
    table("pg_shdescription", 2396, "objoid:26 classoid:26 description:25"),
    table("pg_inherits", 2611, "inhrelid:26 inhparent:26 inhseqno:23 inhdetachpending:16"),
    table(
        "pg_proc",
        1255,
        "oid:26 proname:19 pronamespace:26 proowner:26 prolang:26 procost:700 prorows:700 provariadic:26 \
         prosupport:24 prokind:18 prosecdef:16 proleakproof:16 proisstrict:16 proretset:16 provolatile:18 \
         proparallel:18 pronargs:21 pronargdefaults:21 prorettype:26 proargtypes:30 proallargtypes:1028 \
         proargmodes:1002 proargnames:1009 proargdefaults:25 protrftypes:1028 prosrc:25 probin:25 \
         prosqlbody:25 proconfig:1009 proacl:1009",
    ),
    view(
        "pg_settings",
        12_004,
        "name:25 setting:25 unit:25 category:25 short_desc:25 extra_desc:25 context:25 vartype:25 \
         source:25 min_val:25 max_val:25 enumvals:1009 boot_val:25 reset_val:25 sourcefile:25 \
         sourceline:23 pending_restart:16",
    ),
    view(
        "pg_tables",
        12_005,
        "schemaname:19 tablename:19 tableowner:19 tablespace:19 hasindexes:16 hasrules:16 hastriggers:16 \
         rowsecurity:16",
    ),
    view("pg_views", 12_006, "schemaname:19 viewname:19 viewowner:19 definition:25"),
    view("pg_indexes", 12_007, "schemaname:19 tablename:19 indexname:19 tablespace:19 indexdef:25"),
    table(
        "pg_sequence",
        2224,
        "seqrelid:26 seqtypid:26 seqstart:20 seqincrement:20 seqmax:20 seqmin:20 seqcache:20 seqcycle:16",
    ),
    view(
        "pg_sequences",
        12_008,
        "schemaname:19 sequencename:19 sequenceowner:19 data_type:2206 start_value:20 min_value:20 \
         max_value:20 increment_by:20 cycle:16 cache_size:20 last_value:20",
    ),
    table(
        "pg_depend",
        2608,
        "classid:26 objid:26 objsubid:23 refclassid:26 refobjid:26 refobjsubid:23 deptype:18",
    ),
    table("pg_enum", 3501, "oid:26 enumtypid:26 enumsortorder:700 enumlabel:19"),
    table(
        "pg_range",
        3541,
        "rngtypid:26 rngsubtype:26 rngmultitypid:26 rngcollation:26 rngsubopc:26 rngcanonical:24 \
         rngsubdiff:24",
    ),
    table(
        "pg_trigger",
        2620,
        "oid:26 tgrelid:26 tgparentid:26 tgname:19 tgfoid:26 tgtype:21 tgenabled:18 tgisinternal:16 \
         tgconstrrelid:26 tgconstrindid:26 tgconstraint:26 tgdeferrable:16 tginitdeferred:16 tgnargs:21 \
         tgattr:22 tgargs:17 tgqual:25 tgoldtable:19 tgnewtable:19",
    ),
    table(
        "pg_rewrite",
        2618,
        "oid:26 rulename:19 ev_class:26 ev_type:18 ev_enabled:18 is_instead:16 ev_qual:25 ev_action:25",
    ),
    table(
        "pg_policy",
        3256,
        "oid:26 polname:19 polrelid:26 polcmd:18 polpermissive:16 polroles:1028 polqual:25 \
         polwithcheck:25",
    ),
    table(
        "pg_publication",
        6104,
        "oid:26 pubname:19 pubowner:26 puballtables:16 pubinsert:16 pubupdate:16 pubdelete:16 \
         pubtruncate:16 pubviaroot:16 pubgencols:18",
    ),
    table("pg_publication_rel", 6106, "oid:26 prpubid:26 prrelid:26 prqual:25 prattrs:22"),
    table("pg_publication_namespace", 6237, "oid:26 pnpubid:26 pnnspid:26"),
    table(
        "pg_statistic_ext",
        3381,
        "oid:26 stxrelid:26 stxname:19 stxnamespace:26 stxowner:26 stxkeys:22 stxstattarget:21 \
         stxkind:1002 stxexprs:25",
    ),
    table(
        "pg_statistic_ext_data",
        3429,
        "stxoid:26 stxdinherit:16 stxdndistinct:25 stxddependencies:25 stxdmcv:25 stxdexpr:1009",
    ),
    table(
        "pg_partitioned_table",
        3350,
        "partrelid:26 partstrat:18 partnatts:21 partdefid:26 partattrs:22 partclass:30 partcollation:30 \
         partexprs:25",
    ),
    table("pg_tablespace", 1213, "oid:26 spcname:19 spcowner:26 spcacl:1009 spcoptions:1009"),
    table(
        "pg_language",
        2612,
        "oid:26 lanname:19 lanowner:26 lanispl:16 lanpltrusted:16 lanplcallfoid:26 laninline:26 \
         lanvalidator:26 lanacl:1009",
    ),
    table(
        "pg_operator",
        2617,
        "oid:26 oprname:19 oprnamespace:26 oprowner:26 oprkind:18 oprcanmerge:16 oprcanhash:16 oprleft:26 \
         oprright:26 oprresult:26 oprcom:26 oprnegate:26 oprcode:24 oprrest:24 oprjoin:24",
    ),
    table(
        "pg_opclass",
        2616,
        "oid:26 opcmethod:26 opcname:19 opcnamespace:26 opcowner:26 opcfamily:26 opcintype:26 \
         opcdefault:16 opckeytype:26",
    ),
    table("pg_cast", 2605, "oid:26 castsource:26 casttarget:26 castfunc:26 castcontext:18 castmethod:18"),
    table(
        "pg_aggregate",
        2600,
        "aggfnoid:24 aggkind:18 aggnumdirectargs:21 aggtransfn:24 aggfinalfn:24 aggcombinefn:24 \
         aggserialfn:24 aggdeserialfn:24 aggmtransfn:24 aggminvtransfn:24 aggmfinalfn:24 aggfinalextra:16 \
         aggmfinalextra:16 aggfinalmodify:18 aggmfinalmodify:18 aggsortop:26 aggtranstype:26 \
         aggtransspace:23 aggmtranstype:26 aggmtransspace:23 agginitval:25 aggminitval:25",
    ),
    table(
        "pg_extension",
        3079,
        "oid:26 extname:19 extowner:26 extnamespace:26 extrelocatable:16 extversion:25 extconfig:1028 \
         extcondition:1009",
    ),
    table("pg_foreign_table", 3118, "ftrelid:26 ftserver:26 ftoptions:1009"),
    table(
        "pg_foreign_server",
        1417,
        "oid:26 srvname:19 srvowner:26 srvfdw:26 srvtype:25 srvversion:25 srvacl:1009 srvoptions:1009",
    ),
    table(
        "pg_foreign_data_wrapper",
        2328,
        "oid:26 fdwname:19 fdwowner:26 fdwhandler:26 fdwvalidator:26 fdwacl:1009 fdwoptions:1009",
    ),
    table(
        "pg_event_trigger",
        3466,
        "oid:26 evtname:19 evtevent:19 evtowner:26 evtfoid:26 evtenabled:18 evttags:1009",
    ),
    view(
        "pg_stat_activity",
        12_009,
        "datid:26 datname:19 pid:23 leader_pid:23 usesysid:26 usename:19 application_name:25 \
         client_addr:25 client_hostname:25 client_port:23 backend_start:1184 xact_start:1184 \
         query_start:1184 state_change:1184 wait_event_type:25 wait_event:25 state:25 backend_xid:28 \
         backend_xmin:28 query_id:20 query:25 backend_type:25",
    ),
    view(
        "pg_locks",
        12_010,
        "locktype:25 database:26 relation:26 page:23 tuple:21 virtualxid:25 transactionid:28 classid:26 \
         objid:26 objsubid:21 virtualtransaction:25 pid:23 mode:25 granted:16 fastpath:16 waitstart:1184",
    ),
    view(
        "pg_stat_user_tables",
        12_011,
        "relid:26 schemaname:19 relname:19 seq_scan:20 last_seq_scan:1184 seq_tup_read:20 idx_scan:20 \
         last_idx_scan:1184 idx_tup_fetch:20 n_tup_ins:20 n_tup_upd:20 n_tup_del:20 n_tup_hot_upd:20 \
         n_tup_newpage_upd:20 n_live_tup:20 n_dead_tup:20 n_mod_since_analyze:20 n_ins_since_vacuum:20 \
         last_vacuum:1184 last_autovacuum:1184 last_analyze:1184 last_autoanalyze:1184 vacuum_count:20 \
         autovacuum_count:20 analyze_count:20 autoanalyze_count:20 total_vacuum_time:701 \
         total_autovacuum_time:701 total_analyze_time:701 total_autoanalyze_time:701",
    ),
    view(
        "pg_matviews",
        12_012,
        "schemaname:19 matviewname:19 matviewowner:19 tablespace:19 hasindexes:16 ispopulated:16 \
         definition:25",
    ),
    view(
        "pg_prepared_statements",
        12_013,
        "name:25 statement:25 prepare_time:1184 parameter_types:2211 result_types:2211 from_sql:16 \
         generic_plans:20 custom_plans:20",
    ),
    table("pg_default_acl", 826, "oid:26 defaclrole:26 defaclnamespace:26 defaclobjtype:18 defaclacl:1009"),
    table(
        "pg_conversion",
        2607,
        "oid:26 conname:19 connamespace:26 conowner:26 conforencoding:23 contoencoding:23 conproc:24 \
         condefault:16",
    ),
    table("pg_db_role_setting", 2964, "setdatabase:26 setrole:26 setconfig:1009"),
    table("pg_seclabel", 3596, "objoid:26 classoid:26 objsubid:23 provider:25 label:25"),
    table(
        "pg_subscription",
        6100,
        "oid:26 subdbid:26 subskiplsn:25 subname:19 subowner:26 subenabled:16 subbinary:16 substream:18 \
         subtwophasestate:18 subdisableonerr:16 subpasswordrequired:16 subrunasowner:16 subfailover:16 \
         subconninfo:25 subslotname:19 subsynccommit:25 subpublications:1009 suborigin:25",
    ),
    view(
        "pg_stats",
        12_014,
        "schemaname:19 tablename:19 attname:19 inherited:16 null_frac:700 avg_width:23 n_distinct:700 \
         most_common_vals:1009 most_common_freqs:1021 histogram_bounds:1009 correlation:700 \
         most_common_elems:25 most_common_elem_freqs:1009 elem_count_histogram:1009 \
         range_length_histogram:25 range_empty_frac:700 range_bounds_histogram:25",
    ),
    view(
        "pg_stats_ext",
        12_017,
        "schemaname:19 tablename:19 statistics_schemaname:19 statistics_name:19 statistics_owner:19 \
         attnames:1003 exprs:1009 kinds:1002 inherited:16 n_distinct:25 dependencies:25 \
         most_common_vals:1009 most_common_val_nulls:1000 most_common_freqs:1022 \
         most_common_base_freqs:1022",
    ),
    view(
        "pg_cursors",
        12_015,
        "name:25 statement:25 is_holdable:16 is_binary:16 is_scrollable:16 creation_time:1184",
    ),
    view(
        "pg_stat_database",
        12_016,
        "datid:26 datname:19 numbackends:23 xact_commit:20 xact_rollback:20 blks_read:20 blks_hit:20 \
         tup_returned:20 tup_fetched:20 tup_inserted:20 tup_updated:20 tup_deleted:20 conflicts:20 \
         temp_files:20 temp_bytes:20 deadlocks:20 checksum_failures:20 checksum_last_failure:1184 \
         blk_read_time:701 blk_write_time:701 session_time:701 active_time:701 \
         idle_in_transaction_time:701 sessions:20 sessions_abandoned:20 sessions_fatal:20 \
         sessions_killed:20 parallel_workers_to_launch:20 parallel_workers_launched:20 stats_reset:1184",
    ),
    view(
        "allcore_buffers",
        12_912,
        "frames:20 in_use:20 free_by_node:1016 pages:25 hand:20 passes:20 sweep_batch:23 allocations:20 \
         loads:20 reads:20 evictions:20 writes:20 write_failures:20",
    ),
    view(
        "allcore_log",
        12_913,
        "reserved:20 filled:20 durable:20 writes:20 bytes:20 served:20 in_flight:23 sessions_in_flight:23 \
         segments:23",
    ),
    view(
        "allcore_workers",
        12_914,
        "worker:25 core:23 node:23 processor:23 sessions:20 fibers:20 turns:20 sleeps:20 events:20 \
         served:20 file_operations:20 moved_in:20 moved_out:20 user_time:701 system_time:701",
    ),
    view(
        "allcore_counters",
        12_915,
        "worker:25 core:23 cycles:20 instructions:20 cache_misses:20 node_loads:20 task_clock:20 \
         context_switches:20 migrations:20 page_faults:20 user_only:16 refused:25",
    ),
    view("allcore_page_faults", 12_910, "thread:25 core:23 minor:20 major:20"),
    view("allcore_memory", 12_911, "region:25 pages:25 locked:16 policy:25 reserved:20 used:20 present:20"),
    view(
        "allcore_lock_profile",
        12_900,
        "class:25 site:25 kind:25 hold_max:701 wait_max:701 hold_total:701 wait_total:701 count:20 \
         hold_avg:701 wait_avg:701 contended_hold:20 contended_wait:20",
    ),
    view(
        "allcore_wait_history",
        12_901,
        "time:1184 pid:23 wait_event_type:25 wait_event:25 state:25 query_start:1184 query:25",
    ),
];

/// The relations of information_schema.
pub(super) static INFORMATION_SCHEMA: &[Definition] = &[
    view(
        "tables",
        13_100,
        "table_catalog:19 table_schema:19 table_name:19 table_type:1043 self_referencing_column_name:19 \
         reference_generation:1043 user_defined_type_catalog:19 user_defined_type_schema:19 \
         user_defined_type_name:19 is_insertable_into:1043 is_typed:1043 commit_action:1043",
    ),
    view(
        "columns",
        13_101,
        "table_catalog:19 table_schema:19 table_name:19 column_name:19 ordinal_position:23 \
         column_default:1043 is_nullable:1043 data_type:1043 character_maximum_length:23 \
         character_octet_length:23 numeric_precision:23 numeric_precision_radix:23 numeric_scale:23 \
         datetime_precision:23 interval_type:1043 interval_precision:23 character_set_catalog:19 \
         character_set_schema:19 character_set_name:19 collation_catalog:19 collation_schema:19 \
         collation_name:19 domain_catalog:19 domain_schema:19 domain_name:19 udt_catalog:19 udt_schema:19 \
         udt_name:19 scope_catalog:19 scope_schema:19 scope_name:19 maximum_cardinality:23 \
         dtd_identifier:19 is_self_referencing:1043 is_identity:1043 identity_generation:1043 \
         identity_start:1043 identity_increment:1043 identity_maximum:1043 identity_minimum:1043 \
         identity_cycle:1043 is_generated:1043 generation_expression:1043 is_updatable:1043",
    ),
    view(
        "schemata",
        13_102,
        "catalog_name:19 schema_name:19 schema_owner:19 default_character_set_catalog:19 \
         default_character_set_schema:19 default_character_set_name:19 sql_path:1043",
    ),
    view(
        "table_constraints",
        13_103,
        "constraint_catalog:19 constraint_schema:19 constraint_name:19 table_catalog:19 table_schema:19 \
         table_name:19 constraint_type:1043 is_deferrable:1043 initially_deferred:1043 enforced:1043 \
         nulls_distinct:1043",
    ),
    view(
        "key_column_usage",
        13_104,
        "constraint_catalog:19 constraint_schema:19 constraint_name:19 table_catalog:19 table_schema:19 \
         table_name:19 column_name:19 ordinal_position:23 position_in_unique_constraint:23",
    ),
    view(
        "referential_constraints",
        13_105,
        "constraint_catalog:19 constraint_schema:19 constraint_name:19 unique_constraint_catalog:19 \
         unique_constraint_schema:19 unique_constraint_name:19 match_option:1043 update_rule:1043 \
         delete_rule:1043",
    ),
    view(
        "sequences",
        13_106,
        "sequence_catalog:19 sequence_schema:19 sequence_name:19 data_type:1043 numeric_precision:23 \
         numeric_precision_radix:23 numeric_scale:23 start_value:1043 minimum_value:1043 \
         maximum_value:1043 increment:1043 cycle_option:1043",
    ),
    view(
        "views",
        13_107,
        "table_catalog:19 table_schema:19 table_name:19 view_definition:1043 check_option:1043 \
         is_updatable:1043 is_insertable_into:1043 is_trigger_updatable:1043 is_trigger_deletable:1043 \
         is_trigger_insertable_into:1043",
    ),
    view(
        "constraint_column_usage",
        13_108,
        "table_catalog:19 table_schema:19 table_name:19 column_name:19 constraint_catalog:19 \
         constraint_schema:19 constraint_name:19",
    ),
];
