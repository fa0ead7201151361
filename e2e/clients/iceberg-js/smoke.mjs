// iceberg-js against a REST catalog (catalog calls only: it writes no data).
//
//   node iceberg-js/smoke.mjs "$(iceberg-js/install | tail -1)" URI [TOKEN] [WAREHOUSE]
//
// Prints one line per step, then "N passed, N failed"; exits with 1 when a step failed.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const [folder, baseUrl, token, catalogName] = process.argv.slice(2)
if (!baseUrl) {
  console.error('usage: node smoke.mjs FOLDER URI [TOKEN] [WAREHOUSE]')
  process.exit(2)
}
const { IcebergRestCatalog, IcebergError } = createRequire(`${folder}/`)('iceberg-js')
const catalog = new IcebergRestCatalog({
  baseUrl,
  ...(catalogName ? { catalogName } : {}),
  auth: token ? { type: 'bearer', token } : { type: 'none' },
})

const { version } = JSON.parse(readFileSync(`${folder}/node_modules/iceberg-js/package.json`))
console.log(`client iceberg-js ${version}`)

const namespace = ['smoke_js']
const table = { namespace, name: 'orders' }
const schema = {
  type: 'struct',
  'schema-id': 0,
  'identifier-field-ids': [],
  fields: [{ id: 1, name: 'id', type: 'long', required: false }],
}

const steps = {
  async clean() {
    await catalog.dropTable(table, { purge: false }).catch(() => {})
    await catalog.dropNamespace({ namespace }).catch(() => {})
  },
  async namespace() {
    await catalog.createNamespace({ namespace }, { properties: { owner: 'smoke' } })
    const found = await catalog.loadNamespaceMetadata({ namespace })
    assert.equal(found.properties.owner, 'smoke')
    await assert.rejects(catalog.createNamespace({ namespace }), IcebergError)
  },
  async create() {
    await catalog.createTable({ namespace }, { name: 'orders', schema, properties: { note: 'x' } })
    assert.equal((await catalog.loadTable(table)).properties.note, 'x')
  },
  async properties() {
    await catalog.updateTable(table, { requirements: [], updates: [{ action: 'set-properties', updates: { note: 'y' } }] })
    assert.equal((await catalog.loadTable(table)).properties.note, 'y')
  },
  async list() {
    const answer = await catalog.listTables({ namespace })
    assert.deepEqual((answer.identifiers ?? answer).map((each) => each.name), ['orders'])
  },
  async missing() {
    await assert.rejects(catalog.loadTable({ namespace, name: 'missing' }), (error) => error.isNotFound?.() ?? error.status === 404)
  },
  async drop() {
    await catalog.dropTable(table, { purge: false })
    await catalog.dropNamespace({ namespace })
  },
}

let passed = 0
let failed = 0
for (const [name, step] of Object.entries(steps)) {
  try {
    await step()
    passed++
    console.log(`ok     ${name}`)
  } catch (error) {
    failed++
    console.log(`FAILED ${name}: ${error.message}`)
  }
}
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed ? 1 : 0)
