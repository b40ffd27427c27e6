import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parse } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }
import { root } from '../support/command.ts'
import { read, rendered } from './examples.ts'

/**
 * What Helm makes of the charts lies in rendered/, made by Helm itself, and is tested like the
 * manifests in examples/kubernetes. Each of these files begins with a hash over the charts: nobody
 * can change a chart and forget to have it rendered. Where there is a Helm (in PATH, or at HELM),
 * it lints and renders once more.
 *
 * `HELM=PATH UPDATE=1 npm test -- test/deploying/helm.test.ts` renders the chart again: read the
 * difference.
 */
const helm = process.env['HELM'] ?? 'helm'
const hasHelm = spawnSync(helm, ['version']).error === undefined
const charts = 'charts'
const calls = [
  ['gatehouse', 'gatehouse', '--values', 'gatehouse/ci/standalone-values.yaml'],
  ['orders', 'orders'],
] as const

function hashOfCharts(): string {
  const names = readdirSync(join(root, charts), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(root.length).replaceAll('\\', '/'))
    // What `helm dependency build` leaves behind.
    .filter((path) => !/^charts\/orders\/(?:charts\/|Chart\.lock)/.test(path))
    .toSorted()
  const hash = createHash('sha256')
  for (const name of names) hash.update(`${name}\n${read(name)}\n`)
  return hash.digest('hex')
}

function runHelm(folder: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(helm, args, { cwd: folder, encoding: 'utf8' })
  assert.equal(status, 0, `helm ${args.join(' ')}: ${stderr}${stdout}`)
  return stdout
}

/** A copy of the charts, with the one chart in the other. */
function chartsForHelm(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-helm-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  cpSync(join(root, charts), folder, { recursive: true })
  cpSync(join(folder, 'gatehouse'), join(folder, 'orders', 'charts', 'gatehouse'), { recursive: true })
  return folder
}

if (hasHelm) {
  const folder = chartsForHelm()
  for (const [index, [release, chart, ...values]] of calls.entries()) {
    const kubernetes = ['--kube-version', '1.30.0']
    const template = ['template', release, chart, ...values, '--namespace', 'orders', ...kubernetes]
    const text = () => `# ${hashOfCharts()}: helm ${template.join(' ')}\n${runHelm(folder, template)}`
    const file = rendered[index] as string
    if (process.env['UPDATE'] === '1') writeFileSync(join(root, file), text())

    test(`Helm accepts the chart ${chart} and renders the tested manifests`, () => {
      runHelm(folder, ['lint', '--strict', chart, ...values, ...kubernetes])
      assert.equal(text(), read(file))
    })
  }

  for (const [why, set, said] of [
    ['without a configuration', 'application.podLabels.app=orders', /config is missing/],
    [
      'without the labels of the application, because it would select every pod',
      'config.version=1',
      /podLabels is missing/,
    ],
    ['with an unknown setting', 'replica=3', /replica/],
  ] as const)
    test(`The chart does not render ${why}`, () => {
      const args = ['template', 'gatehouse', 'gatehouse', '--kube-version', '1.30.0', '--set', set]
      const { status, stdout, stderr } = spawnSync(helm, args, { cwd: folder, encoding: 'utf8' })

      assert.deepEqual([status, stdout], [1, ''])
      assert.match(stderr, said)
    })
}

for (const file of rendered)
  test(`The rendered file ${file} is up to date with the charts`, () => {
    assert.equal(
      read(file).split(':')[0],
      `# ${hashOfCharts()}`,
      'HELM=PATH UPDATE=1 npm test -- test/deploying/helm.test.ts',
    )
  })

test('The chart has the version of the package, and its schema describes every value', () => {
  const chart = parse(read('charts/gatehouse/Chart.yaml')) as Record<string, string>
  const values = parse(read('charts/gatehouse/values.yaml')) as Record<string, unknown>
  const schema = JSON.parse(read('charts/gatehouse/values.schema.json')) as { properties: object }
  const orders = parse(read('charts/orders/Chart.yaml')) as { dependencies: [{ version: string }] }

  assert.deepEqual(
    [chart['version'], chart['appVersion'], orders.dependencies[0].version],
    Array(3).fill(manifest.version),
  )
  assert.deepEqual(
    Object.keys(values).toSorted(),
    Object.keys(schema.properties)
      .filter((name) => name !== 'global')
      .toSorted(),
  )
})
