// Go's pgx, in each of its ways of running a statement, and lib/pq under database/sql, against the server the
// environment names.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/lib/pq"
)

var ctx = context.Background()

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func same(seen, expected any, about string) {
	if !reflect.DeepEqual(seen, expected) {
		panic(fmt.Sprintf("%s: expected %v (%T), got %v (%T)", about, expected, expected, seen, seen))
	}
}

func failed(err error, code string) *pgconn.PgError {
	var fault *pgconn.PgError
	if !errors.As(err, &fault) || fault.Code != code {
		panic(fmt.Sprintf("expected %s, got %v", code, err))
	}
	return fault
}

func connect(mode pgx.QueryExecMode) *pgx.Conn {
	config, err := pgx.ParseConfig("")
	must(err)
	config.DefaultQueryExecMode = mode
	c, err := pgx.ConnectConfig(ctx, config)
	must(err)
	return c
}

var modes = []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
	pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol}

func types() {
	for _, mode := range modes {
		c := connect(mode)
		text, number, when := "naïve ☃", int64(-1<<63), time.Date(2024, 2, 29, 12, 0, 0, 123000, time.UTC)
		var gotText string
		var gotNumber int64
		var gotWhen time.Time
		var gotBytes []byte
		var gotFloat float64
		var gotBool bool
		var nothing *string
		must(c.QueryRow(ctx, "select $1::text, $2::bigint, $3::timestamptz, $4::bytea, $5::float8, $6::bool, $7::text",
			text, number, when, []byte{0, 255}, 0.1, true, nil).
			Scan(&gotText, &gotNumber, &gotWhen, &gotBytes, &gotFloat, &gotBool, &nothing))
		same(gotText, text, "text")
		same(gotNumber, number, "bigint")
		same(gotWhen.UTC(), when, "timestamptz")
		same(gotBytes, []byte{0, 255}, "bytea")
		same(gotFloat, 0.1, "float8")
		same(gotBool, true, "bool")
		same(nothing == nil, true, "null")
		var numbers []int32
		var words []string
		must(c.QueryRow(ctx, "select array[1, 2]::int[], array['a', 'b,c']::text[]").Scan(&numbers, &words))
		same(numbers, []int32{1, 2}, "int[]")
		same(words, []string{"a", "b,c"}, "text[]")
		c.Close(ctx)
	}
}

func rowsAndErrors() {
	for _, mode := range modes {
		c := connect(mode)
		_, err := c.Exec(ctx, "drop table if exists go_t")
		must(err)
		_, err = c.Exec(ctx, "create table go_t (a int primary key, b text)")
		must(err)
		tag, err := c.Exec(ctx, "insert into go_t values ($1, $2), ($3, $4)", 1, "x", 2, nil)
		must(err)
		same(tag.RowsAffected(), int64(2), "rows")
		_, err = c.Exec(ctx, "insert into go_t values ($1, 'again')", 1)
		same(failed(err, "23505").ConstraintName, "go_t_pkey", "constraint")
		_, err = c.Exec(ctx, "select * from nowhere")
		failed(err, "42P01")
		err = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "delete from go_t")
			must(err)
			inner, err := tx.Begin(ctx)
			must(err)
			_, err = inner.Exec(ctx, "select 1/0")
			failed(err, "22012")
			must(inner.Rollback(ctx))
			return errors.New("take it back")
		})
		same(err.Error(), "take it back", "rollback")
		rows, err := c.Query(ctx, "select a from go_t order by a")
		must(err)
		found, err := pgx.CollectRows(rows, pgx.RowTo[int32])
		must(err)
		same(found, []int32{1, 2}, "rows")
		c.Close(ctx)
	}
}

func batchesAndCopy() {
	c := connect(pgx.QueryExecModeCacheStatement)
	defer c.Close(ctx)
	batch := &pgx.Batch{}
	for n := range 300 {
		batch.Queue("select $1::int + 1", n)
	}
	results := c.SendBatch(ctx, batch)
	for n := range 300 {
		var got int
		must(results.QueryRow().Scan(&got))
		same(got, n+1, "batch")
	}
	must(results.Close())
	batch = &pgx.Batch{}
	batch.Queue("select 1")
	batch.Queue("select 1/0")
	batch.Queue("select 2")
	failed(c.SendBatch(ctx, batch).Close(), "22012")
	_, err := c.Exec(ctx, "drop table if exists go_copy; create table go_copy (a int primary key, b text, c timestamptz, d numeric)")
	must(err)
	rows := make([][]any, 3000)
	for n := range rows {
		rows[n] = []any{n, fmt.Sprint("row ", n), time.Unix(int64(n), 0), "1.50"}
	}
	given, err := c.CopyFrom(ctx, pgx.Identifier{"go_copy"}, []string{"a", "b", "c", "d"}, pgx.CopyFromRows(rows))
	must(err)
	same(given, int64(3000), "copied")
	_, err = c.CopyFrom(ctx, pgx.Identifier{"go_copy"}, []string{"a", "b", "c", "d"}, pgx.CopyFromRows(rows[:1]))
	failed(err, "23505")
	var out strings.Builder
	tag, err := c.PgConn().CopyTo(ctx, &out, "copy go_copy to stdout")
	must(err)
	same(tag.RowsAffected(), int64(3000), "copied out")
	_, err = c.PgConn().CopyFrom(ctx, strings.NewReader("nonsense\tb\t\\N\t\\N\n"), "copy go_copy from stdin")
	failed(err, "22P02")
}

func cancelAndLimits() {
	c := connect(pgx.QueryExecModeCacheStatement)
	defer c.Close(ctx)
	same(c.PgConn().ParameterStatus("server_encoding"), "UTF8", "encoding")
	go func() {
		time.Sleep(200 * time.Millisecond)
		must(c.PgConn().CancelRequest(ctx))
	}()
	_, err := c.Exec(ctx, "select pg_sleep(30)")
	failed(err, "57014")
	var sum int64
	rows, err := c.Query(ctx, "select g from generate_series(1, 200000) g")
	must(err)
	for rows.Next() {
		var n int64
		must(rows.Scan(&n))
		sum += n
	}
	must(rows.Err())
	same(sum, int64(200000)*200001/2, "sum")
}

func databaseSQL() {
	db, err := sql.Open("postgres", "")
	must(err)
	defer db.Close()
	var n int
	must(db.QueryRow("select $1::int + 1", 41).Scan(&n))
	same(n, 42, "lib/pq")
	statement, err := db.Prepare("select count(*) from generate_series(1, $1)")
	must(err)
	for n := range 50 {
		var got int
		must(statement.QueryRow(n).Scan(&got))
		same(got, n, "prepared")
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	must(err)
	_, err = tx.Exec("create table go_no (a int)")
	same(err != nil, true, "read only")
	must(tx.Rollback())
}

func main() {
	checks := []struct {
		name string
		run  func()
	}{{"types", types}, {"rowsAndErrors", rowsAndErrors}, {"batchesAndCopy", batchesAndCopy},
		{"cancelAndLimits", cancelAndLimits}, {"databaseSQL", databaseSQL}}
	status := 0
	for at, check := range checks {
		func() {
			word := "ok"
			defer func() {
				if fault := recover(); fault != nil {
					word, status = fmt.Sprint("FAILED: ", fault), 1
				}
				fmt.Printf("[%d/%d] %s: %s\n", at+1, len(checks), check.name, word)
			}()
			check.run()
		}()
	}
	os.Exit(status)
}
