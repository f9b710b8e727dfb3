// JDBC (pgjdbc) against the server the environment names: types in text and binary, batches, fetch size, generated
// keys, COPY, cancel, errors, metadata.
import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.*;
import org.postgresql.PGConnection;
import org.postgresql.util.PSQLException;

public class Check {
    interface Work { void run(Connection c) throws Exception; }

    static Connection connect(String... options) throws SQLException {
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/"
            + System.getenv().getOrDefault("PGDATABASE", "postgres") + "?" + String.join("&", options) + "&sslmode="
            + System.getenv().getOrDefault("PGSSLMODE", "prefer");
        return DriverManager.getConnection(url, System.getenv().getOrDefault("PGUSER", "postgres"),
            System.getenv().getOrDefault("PGPASSWORD", ""));
    }

    static void same(Object seen, Object expected, String about) {
        if (!Objects.equals(seen, expected)) throw new AssertionError(about + ": expected " + expected + ", got " + seen);
    }

    static void fails(String code, Work work, Connection c) throws Exception {
        try {
            work.run(c);
        } catch (SQLException fault) {
            same(fault.getSQLState(), code, fault.getMessage());
            return;
        }
        throw new AssertionError("expected " + code);
    }

    static void execute(Connection c, String... statements) throws SQLException {
        try (Statement s = c.createStatement()) {
            for (String statement : statements) s.execute(statement);
        }
    }

    static final Object[][] VALUES = {
        {"boolean", true}, {"integer", Integer.MIN_VALUE}, {"bigint", Long.MAX_VALUE}, {"double precision", 0.1}, {"real", 1.5f},
        {"numeric", new BigDecimal("-12345678901234567890.000123")}, {"text", "naïve ☃ 𝄞"}, {"varchar(9)", ""},
        {"date", LocalDate.of(2024, 2, 29)}, {"timestamp", LocalDateTime.of(1969, 12, 31, 23, 59, 59, 1000)},
        {"timestamptz", OffsetDateTime.of(2024, 2, 29, 12, 0, 0, 0, ZoneOffset.UTC)}, {"time", LocalTime.of(23, 59, 59)},
        {"uuid", UUID.fromString("12345678-1234-5678-1234-567812345678")},
    };

    static void types(Connection unused) throws Exception {
        for (String mode : List.of("prepareThreshold=1&binaryTransfer=true", "prepareThreshold=0", "preferQueryMode=simple",
            "preferQueryMode=extendedForPrepared", "prepareThreshold=-1")) {
            try (Connection c = connect(mode)) {
                for (Object[] value : VALUES) {
                    execute(c, "drop table if exists jdbc_v", "create table jdbc_v (id int primary key, v " + value[0] + ")");
                    try (PreparedStatement in = c.prepareStatement("insert into jdbc_v values (?, ?)");
                         PreparedStatement out = c.prepareStatement("select v from jdbc_v order by id")) {
                        in.setInt(1, 1);
                        in.setObject(2, value[1]);
                        in.executeUpdate();
                        in.setInt(1, 2);
                        in.setObject(2, null);
                        in.executeUpdate();
                        for (int round = 0; round < 3; round++) {
                            try (ResultSet rows = out.executeQuery()) {
                                rows.next();
                                same(rows.getObject(1, value[1].getClass()), value[1], value[0] + " " + mode);
                                rows.next();
                                same(rows.getObject(1), null, value[0] + " null");
                            }
                        }
                    }
                }
                try (PreparedStatement s = c.prepareStatement("select ?::bytea, ?::int[], ?::text[]")) {
                    s.setBytes(1, new byte[] {0, -1});
                    s.setArray(2, c.createArrayOf("integer", new Integer[] {1, null, 3}));
                    s.setArray(3, c.createArrayOf("text", new String[] {"a,b", "\""}));
                    for (int round = 0; round < 7; round++) {
                        try (ResultSet rows = s.executeQuery()) {
                            rows.next();
                            same(Arrays.toString(rows.getBytes(1)), "[0, -1]", "bytea");
                            same(Arrays.toString((Object[]) rows.getArray(2).getArray()), "[1, null, 3]", "int[]");
                            same(Arrays.toString((Object[]) rows.getArray(3).getArray()), "[a,b, \"]", "text[]");
                        }
                    }
                }
            }
        }
    }

    static void batchesAndKeys(Connection c) throws Exception {
        execute(c, "drop table if exists jdbc_b", "create table jdbc_b (id serial primary key, v text)");
        for (String options : List.of("reWriteBatchedInserts=true", "reWriteBatchedInserts=false")) {
            try (Connection own = connect(options); PreparedStatement s = own.prepareStatement("insert into jdbc_b (v) values (?)")) {
                for (int n = 0; n < 1000; n++) {
                    s.setString(1, "v" + n);
                    s.addBatch();
                }
                same(s.executeBatch().length, 1000, "batch");
            }
        }
        try (PreparedStatement s = c.prepareStatement("insert into jdbc_b (v) values (?)", Statement.RETURN_GENERATED_KEYS)) {
            s.setString(1, "x");
            s.executeUpdate();
            try (ResultSet keys = s.getGeneratedKeys()) {
                keys.next();
                same(keys.getInt("id"), 2001, "generated key");
            }
        }
        try (PreparedStatement s = c.prepareStatement("insert into jdbc_b values (?, 'again')")) {
            s.setInt(1, 5000);
            s.addBatch();
            s.setInt(1, 1);
            s.addBatch();
            fails("23505", unused -> s.executeBatch(), c);
        }
    }

    static void fetchSize(Connection c) throws Exception {
        c.setAutoCommit(false);
        try (PreparedStatement s = c.prepareStatement("select g from generate_series(1, ?) g")) {
            s.setFetchSize(77);
            s.setInt(1, 10000);
            long sum = 0;
            try (ResultSet rows = s.executeQuery()) {
                while (rows.next()) sum += rows.getInt(1);
            }
            same(sum, 50005000L, "sum");
            s.setMaxRows(10);
            int count = 0;
            try (ResultSet rows = s.executeQuery()) {
                while (rows.next()) count++;
            }
            same(count, 10, "max rows");
        }
        c.commit();
    }

    static void transactionsAndErrors(Connection c) throws Exception {
        execute(c, "drop table if exists jdbc_t", "create table jdbc_t (a int primary key, b text not null)");
        c.setAutoCommit(false);
        execute(c, "insert into jdbc_t values (1, 'x')");
        Savepoint savepoint = c.setSavepoint("s");
        fails("23505", own -> execute(own, "insert into jdbc_t values (1, 'y')"), c);
        fails("25P02", own -> execute(own, "select 1"), c);
        c.rollback(savepoint);
        c.commit();
        fails("23502", own -> execute(own, "insert into jdbc_t values (2, null)"), c);
        c.rollback();
        c.setAutoCommit(true);
        c.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        same(c.getTransactionIsolation(), Connection.TRANSACTION_REPEATABLE_READ, "isolation");
        c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        c.setReadOnly(true);
        c.setAutoCommit(false);
        fails("25006", own -> execute(own, "delete from jdbc_t"), c);
        c.rollback();
        c.setReadOnly(false);
        c.setAutoCommit(true);
        same(c.isValid(2), true, "valid");
        // A table that changes under a prepared statement: the driver prepares again.
        try (Connection own = connect("prepareThreshold=1&autosave=conservative");
             PreparedStatement s = own.prepareStatement("select * from jdbc_t")) {
            for (int n = 0; n < 3; n++) s.executeQuery().close();
            execute(own, "alter table jdbc_t add c int");
            own.setAutoCommit(false);
            try (ResultSet rows = s.executeQuery()) {
                same(rows.getMetaData().getColumnCount(), 3, "columns");
            }
            own.commit();
        }
        try (Statement s = c.createStatement()) {
            same(s.execute("select 1; update jdbc_t set b = 'z'; select 2"), true, "several");
            same(s.getMoreResults(), false, "several");
            same(s.getUpdateCount(), 1, "several");
            same(s.getMoreResults(), true, "several");
        }
    }

    static void copyAndCancel(Connection c) throws Exception {
        var copies = c.unwrap(PGConnection.class).getCopyAPI();
        execute(c, "drop table if exists jdbc_c", "create table jdbc_c (a int primary key, b text)");
        StringBuilder lines = new StringBuilder();
        for (int n = 0; n < 5000; n++) lines.append(n).append("\ttext ").append(n).append('\n');
        same(copies.copyIn("copy jdbc_c from stdin", new StringReader(lines.toString())), 5000L, "copied in");
        StringWriter out = new StringWriter();
        same(copies.copyOut("copy jdbc_c to stdout", out), 5000L, "copied out");
        same(out.toString(), lines.toString(), "copied out");
        fails("22P02", own -> copies.copyIn("copy jdbc_c from stdin", new StringReader("x\ty\n")), c);
        var cut = copies.copyIn("copy jdbc_c from stdin");
        cut.writeToCopy("9999\tx\n".getBytes(), 0, 7);
        cut.cancelCopy();
        try (Statement s = c.createStatement()) {
            new Thread(() -> {
                try {
                    Thread.sleep(300);
                    s.cancel();
                } catch (Exception fault) {
                    throw new RuntimeException(fault);
                }
            }).start();
            fails("57014", own -> s.execute("select pg_sleep(30)"), c);
            s.setQueryTimeout(1);
            fails("57014", own -> s.execute("select count(*) from generate_series(1, 10000000000)"), c);
        }
    }

    static void metadata(Connection c) throws Exception {
        execute(c, "drop table if exists jdbc_child, jdbc_parent", "create table jdbc_parent (id int primary key, n varchar(7) unique)",
            "create table jdbc_child (id bigserial primary key, p int references jdbc_parent on delete cascade, t numeric(9,2) default 0)",
            "create index jdbc_child_t on jdbc_child (t)");
        DatabaseMetaData about = c.getMetaData();
        same(about.getDatabaseProductName(), "PostgreSQL", "product");
        List<String> found = new ArrayList<>();
        try (ResultSet rows = about.getTables(null, "public", "jdbc_c%", new String[] {"TABLE"})) {
            while (rows.next()) found.add(rows.getString("TABLE_NAME"));
        }
        same(found.contains("jdbc_child"), true, "tables");
        found.clear();
        try (ResultSet rows = about.getColumns(null, "public", "jdbc_child", null)) {
            while (rows.next()) found.add(rows.getString("COLUMN_NAME") + " " + rows.getString("TYPE_NAME") + " " + rows.getInt("COLUMN_SIZE"));
        }
        same(found, List.of("id bigserial 19", "p int4 10", "t numeric 9"), "columns");
        found.clear();
        execute(c, "create index jdbc_child_two on jdbc_child (t desc, p)");
        try (ResultSet rows = about.getPrimaryKeys(null, "public", "jdbc_child")) {
            while (rows.next()) found.add(rows.getString("COLUMN_NAME") + " " + rows.getInt("KEY_SEQ") + " " + rows.getString("PK_NAME"));
        }
        try (ResultSet rows = about.getImportedKeys(null, "public", "jdbc_child")) {
            while (rows.next()) found.add(rows.getString("PKTABLE_NAME") + " " + rows.getString("FKCOLUMN_NAME") + " " + rows.getInt("DELETE_RULE"));
        }
        try (ResultSet rows = about.getIndexInfo(null, "public", "jdbc_child", false, false)) {
            while (rows.next()) found.add(rows.getString("INDEX_NAME") + " " + rows.getString("COLUMN_NAME") + " " + rows.getString("ASC_OR_DESC"));
        }
        same(found, List.of("id 1 jdbc_child_pkey", "jdbc_parent p 0", "jdbc_child_pkey id A", "jdbc_child_t t A",
            "jdbc_child_two t D", "jdbc_child_two p A"), "keys and indexes");
        found.clear();
        try (ResultSet rows = about.getTypeInfo()) {
            while (rows.next()) found.add(rows.getString("TYPE_NAME"));
        }
        same(found.containsAll(List.of("int4", "numeric", "serial", "_text")), true, "types " + found);
        try (Statement s = c.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_UPDATABLE)) {
            s.execute("insert into jdbc_parent values (1, 'a')");
            try (ResultSet rows = s.executeQuery("select id, n from jdbc_parent")) {
                rows.next();
                rows.updateString(2, "b");
                rows.updateRow();
            }
            try (ResultSet rows = s.executeQuery("select n from jdbc_parent")) {
                rows.next();
                same(rows.getString(1), "b", "updatable result set");
            }
        }
        about.getSchemas().close();
        about.getCatalogs().close();
        try (Statement s = c.createStatement(); ResultSet rows = s.executeQuery("select id, p as other, t from jdbc_child")) {
            ResultSetMetaData columns = rows.getMetaData();
            same(columns.getColumnTypeName(3), "numeric", "type");
            same(columns.getPrecision(3), 9, "precision");
            same(columns.isAutoIncrement(1), true, "auto increment");
            same(columns.isNullable(1), ResultSetMetaData.columnNoNulls, "nullable");
        }
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Work> checks = new LinkedHashMap<>();
        checks.put("types", Check::types);
        checks.put("batchesAndKeys", Check::batchesAndKeys);
        checks.put("fetchSize", Check::fetchSize);
        checks.put("transactionsAndErrors", Check::transactionsAndErrors);
        checks.put("copyAndCancel", Check::copyAndCancel);
        checks.put("metadata", Check::metadata);
        int failed = 0, at = 0;
        for (var check : checks.entrySet()) {
            String word = "ok";
            try (Connection c = connect()) {
                check.getValue().run(c);
            } catch (Throwable fault) {
                failed++;
                StringWriter trace = new StringWriter();
                fault.printStackTrace(new java.io.PrintWriter(trace));
                word = "FAILED\n" + trace;
            }
            System.out.println("[" + ++at + "/" + checks.size() + "] " + check.getKey() + ": " + word);
        }
        System.exit(failed == 0 ? 0 : 1);
    }
}
