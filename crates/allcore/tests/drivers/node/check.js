// node's pg against the server its environment names: types, prepared statements, errors, cursors, COPY, cancel.
const assert = require('node:assert/strict')
const { Client, Pool } = require('pg')
const Cursor = require('pg-cursor')
const { from: copyFrom, to: copyTo } = require('pg-copy-streams')
const { pipeline } = require('node:stream/promises')
const { Readable } = require('node:stream')

const options = {
  host: process.env.PGHOST, port: Number(process.env.PGPORT), user: process.env.PGUSER ?? 'postgres',
  database: process.env.PGDATABASE ?? 'postgres', password: process.env.PGPASSWORD,
  ssl: process.env.PGSSLMODE === 'require' ? { rejectUnauthorized: false } : false,
}

async function connected(work) {
  const client = new Client(options)
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

async function fails(code, promise) {
  const fault = await promise.then(() => assert.fail(`expected ${code}`), (fault) => fault)
  assert.equal(fault.code, code, fault.message)
  return fault
}

const checks = {
  types: () => connected(async (c) => {
    const cases = [
      ['boolean', true, true], ['integer', -5, -5], ['bigint', '9223372036854775807', '9223372036854775807'],
      ['double precision', 0.1, 0.1], ['numeric(10,2)', '12.50', '12.50'], ['text', 'naïve ☃', 'naïve ☃'],
      ['varchar(9)', '', ''], ['char(3)', 'a', 'a  '], ['bytea', Buffer.from([0, 255]), Buffer.from([0, 255])],
      ['timestamptz', new Date(1e12), new Date(1e12)], ['uuid', '12345678-1234-5678-1234-567812345678', '12345678-1234-5678-1234-567812345678'],
      ['integer[]', [1, null, 3], [1, null, 3]], ['text[]', ['a,b', '"', ''], ['a,b', '"', '']],
    ]
    for (const [type, given, expected] of cases) {
      assert.deepEqual((await c.query(`select $1::${type} as v`, [given])).rows[0].v, expected, type)
      assert.equal((await c.query(`select $1::${type} as v`, [null])).rows[0].v, null, type)
    }
    const binary = await c.query({ text: 'select 7::int as a, true as b, $1::text as d', values: ['x'], binary: true })
    assert.deepEqual(binary.rows[0], { a: 7, b: true, d: Buffer.isBuffer(binary.rows[0].d) ? Buffer.from('x') : 'x' })
    assert.equal((await c.query({ text: 'select 1, 2', rowMode: 'array' })).rows[0].length, 2)
  }),
  prepared: () => connected(async (c) => {
    for (let n = 0; n < 50; n++) {
      const { rows } = await c.query({ name: 'add', text: 'select $1::int + $2::int as sum', values: [n, 1] })
      assert.equal(rows[0].sum, n + 1)
    }
    const many = await Promise.all(Array.from({ length: 200 }, (_, n) => c.query('select $1::int as n', [n])))
    assert.deepEqual(many.map((r) => r.rows[0].n), Array.from({ length: 200 }, (_, n) => n))
    const several = await c.query('select 1 as a; select 2 as b')
    assert.deepEqual(several.map((r) => r.rows[0]), [{ a: 1 }, { b: 2 }])
  }),
  errors: () => connected(async (c) => {
    await c.query('drop table if exists node_t')
    await c.query('create table node_t (a int primary key, b text not null)')
    const done = await c.query('insert into node_t values ($1, $2), ($3, $4) returning a', [1, 'x', 2, 'y'])
    assert.equal(done.rowCount, 2)
    const fault = await fails('23505', c.query('insert into node_t values (1, $1)', ['z']))
    assert.equal(fault.constraint, 'node_t_pkey')
    await fails('23502', c.query('insert into node_t values (3, null)'))
    await fails('42601', c.query('selec'))
    await fails('08P01', c.query('select $1::int + $2::int', [1]))
    await c.query('begin')
    await fails('22012', c.query('select 1/$1::int', [0]))
    await fails('25P02', c.query('select 1'))
    await c.query('rollback')
    assert.equal((await c.query('select count(*) from node_t')).rows[0].count, '2')
  }),
  cursors_and_large_results: () => connected(async (c) => {
    const cursor = c.query(new Cursor('select g from generate_series(1, $1::int) g', [1000]))
    let seen = 0
    for (let rows; (rows = await cursor.read(99)).length > 0;) seen += rows.length
    assert.equal(seen, 1000)
    const cut = c.query(new Cursor('select generate_series(1, 1000)'))
    assert.equal((await cut.read(3)).length, 3)
    await cut.close()
    assert.equal((await c.query('select g from generate_series(1, 100000) g')).rows.length, 100000)
  }),
  copy: () => connected(async (c) => {
    await c.query('drop table if exists node_copy')
    await c.query('create table node_copy (a int primary key, b text)')
    const lines = Array.from({ length: 5000 }, (_, n) => `${n}\ttext ${n}\n`)
    await pipeline(Readable.from(lines), c.query(copyFrom('copy node_copy from stdin')))
    let out = ''
    for await (const piece of c.query(copyTo('copy node_copy to stdout'))) out += piece
    assert.equal(out, lines.join(''))
    await fails('22P02', pipeline(Readable.from(['x\ty\n']), c.query(copyFrom('copy node_copy from stdin'))))
    assert.equal((await c.query('select count(*)::int as n from node_copy')).rows[0].n, 5000)
  }),
  cancel_and_limits: () => connected(async (c) => {
    const asleep = fails('57014', c.query('select pg_sleep(30)'))
    setTimeout(() => {
      const other = new Client(options)
      other.connect().then(() => other.query('select pg_cancel_backend($1)', [c.processID])).then(() => other.end())
    }, 200)
    await asleep
    await c.query("set statement_timeout = '50ms'")
    await fails('57014', c.query('select count(*) from generate_series(1, 10000000000)'))
  }),
  pool: async () => {
    const pool = new Pool({ ...options, max: 20 })
    const sums = await Promise.all(Array.from({ length: 500 }, (_, n) => pool.query('select $1::int + 1 as n', [n])))
    assert.equal(sums.reduce((sum, r) => sum + r.rows[0].n, 0), 125250)
    await pool.end()
  },
}

async function main() {
  let failed = 0
  const names = Object.keys(checks)
  for (const [at, name] of names.entries()) {
    try {
      await checks[name]()
      console.log(`[${at + 1}/${names.length}] ${name}: ok`)
    } catch (fault) {
      failed++
      console.log(`[${at + 1}/${names.length}] ${name}: FAILED\n${fault.stack}`)
    }
  }
  process.exit(failed ? 1 : 0)
}
main()
