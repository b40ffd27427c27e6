import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { parse } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }
import { registrationsText } from '../../src/config/registration.ts'
import { root } from '../support/command.ts'
import definitions from './crds.json' with { type: 'json' }
import {
  type Container,
  documentsIn,
  gatewayConfig,
  gatewayFileIn,
  inKubernetes,
  type Manifest,
  read,
  rendered,
  variants,
} from './examples.ts'

/**
 * What Helm makes of the charts lies in rendered/, made by Helm itself, and is tested like the
 * manifests in examples/kubernetes. Each of these files begins with a hash over the charts: nobody
 * can change a chart and forget to have it rendered. Where there is a Helm (in PATH, or at HELM),
 * it lints and renders once more. With KUBERNETES_SCHEMAS, kubeconform (in PATH, or at KUBECONFORM)
 * compares all fields with the APIs of Kubernetes.
 *
 * `HELM=PATH UPDATE=1 npm test -- test/deploying/helm.test.ts` renders the chart again: read the
 * difference.
 */
const helm = process.env['HELM'] ?? 'helm'
const hasHelm = spawnSync(helm, ['version']).error === undefined
const charts = 'charts'
const values = (name: string) => ['--values', `gatehouse/ci/${name}-values.yaml`]
const calls = [
  ['gatehouse', 'gatehouse', ...values('standalone')],
  ['orders', 'orders'],
  ['gatehouse', 'gatehouse', ...values('standalone'), ...values('options')],
  ['gatehouse', 'gatehouse', ...values('ext-authz')],
  ['gatehouse', 'gatehouse', ...values('file')],
  ['gatehouse', 'gatehouse', ...values('without-secrets')],
] as const
const files = [...rendered, ...variants]

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
  for (const [index, [release, chart, ...options]] of calls.entries()) {
    const kubernetes = ['--kube-version', '1.30.0']
    const template = ['template', release, chart, ...options, '--namespace', 'orders', ...kubernetes]
    const text = () => `# ${hashOfCharts()}: helm ${template.join(' ')}\n${runHelm(folder, template)}`
    const file = files[index] as string
    if (process.env['UPDATE'] === '1') writeFileSync(join(root, file), text())

    test(`Helm accepts the chart ${chart} and renders ${file}`, () => {
      runHelm(folder, ['lint', '--strict', chart, ...options, ...kubernetes])
      assert.equal(text(), read(file))
    })
  }

  const required = 'application.podLabels.app=orders,networkPolicy.from[0].podSelector.matchLabels.app=proxy'
  const valid = 'config.external_url=https://orders.example.com'
  for (const [why, set, said] of [
    ['without a configuration', required, /config is missing: it is gateway\.yaml/],
    [
      'without the labels of the application, because it would select every pod',
      `replicas=1,networkPolicy.from[0].podSelector.matchLabels.app=proxy,${valid}`,
      /application\.podLabels is missing/,
    ],
    [
      'without the pods of the proxy',
      `replicas=1,application.podLabels.app=orders,${valid}`,
      /networkPolicy\.from is missing/,
    ],
    ['with an unknown value', 'replica=3', /additional properties 'replica' not allowed/],
    [
      'with an unknown value in another one',
      'httpRoute.parentRef=web',
      /'\/httpRoute': additional properties 'parentRef' not allowed/,
    ],
    [
      'with several pods that do not share sessions',
      `${required},${valid}`,
      /replicas: 2 pods can share sessions only/,
    ],
    [
      'with an autoscaler for a session file',
      `${required},${valid},config.session.store.file=/var/lib/gatehouse/s.db,replicas=1,autoscaling.enabled=true`,
      /autoscaling\.enabled: pods can share sessions only in Redis/,
    ],
    [
      'when Kubernetes would kill a pod that still drains',
      `${required},${valid},replicas=1,config.shutdown.drain_timeout=2m,terminationGracePeriodSeconds=60`,
      /terminationGracePeriodSeconds: 60 is too short.* take 125 s together/,
    ],
    [
      'with check requests in a sidecar',
      `${required},${valid},mode=sidecar,extAuthz.enabled=true`,
      /extAuthz\.enabled needs mode: standalone/,
    ],
  ] as const)
    test(`The chart does not render ${why}`, () => {
      const args = ['template', 'gatehouse', 'gatehouse', '--kube-version', '1.30.0', '--set', set]
      const { status, stdout, stderr } = spawnSync(helm, args, { cwd: folder, encoding: 'utf8' })

      assert.deepEqual([status, stdout], [1, ''])
      assert.match(stderr, said)
    })

  test('The notes of an installation name the URIs that gatehouse check prints', () => {
    const notes = join(folder, 'notes', 'gatehouse')
    cpSync(join(folder, 'gatehouse'), notes, { recursive: true })
    // `helm template` renders no notes, so they are a manifest here.
    const asManifest = read('charts/gatehouse/templates/NOTES.txt').replaceAll(/^/gm, '  ')
    writeFileSync(join(notes, 'templates', 'notes.yaml'), `notes: |\n${asManifest}`)
    const ownPath = ['--set', 'config.reserved_prefix=/oauth2/,config.external_url=https://orders.example.com/']
    const template = ['template', 'gatehouse', notes, ...values('standalone'), ...ownPath, '--kube-version', '1.30.0']
    const manifests = documentsIn(runHelm(folder, template)) as (Manifest & { notes?: string })[]
    const said = manifests.find((one) => one.notes !== undefined)?.notes ?? ''

    const uris = (text: string) => [...text.matchAll(/URI +(https:\S+)/g)].map(([, uri]) => uri)
    assert.deepEqual(uris(said), uris(registrationsText(gatewayConfig(gatewayFileIn(manifests)))))
  })

  test('A chart whose values are templates gets the container and the volumes from them', () => {
    const site = join(folder, 'site')
    const write = (path: string, text: string) => {
      mkdirSync(dirname(join(site, path)), { recursive: true })
      writeFileSync(join(site, path), text)
    }
    cpSync(join(folder, 'gatehouse'), join(site, 'charts', 'gatehouse'), { recursive: true })
    write('Chart.yaml', 'apiVersion: v2\nname: site\nversion: 0.1.0\n')
    write('charts/app/Chart.yaml', 'apiVersion: v2\nname: app\nversion: 0.1.0\n')
    write('charts/app/values.yaml', "containers: ''\nvolumes: ''\n")
    write(
      'charts/app/templates/pod.yaml',
      'kind: Pod\nspec:\n  containers: {{ tpl .Values.containers . | nindent 4 }}\n  volumes: {{ tpl .Values.volumes . | nindent 4 }}\n',
    )
    const own = parse(read('charts/orders/values.yaml')) as { gatehouse: object }
    const app = {
      containers: '{{ include "gatehouse.sidecar.container" . }}',
      volumes: '{{ include "gatehouse.sidecar.volumes" . }}',
    }
    write('values.yaml', JSON.stringify({ gatehouse: own.gatehouse, app }))

    const pods = (text: string, kind: string) => documentsIn(text).find((one) => one.kind === kind) as Manifest
    const pod = pods(runHelm(folder, ['template', 'orders', 'site', '--kube-version', '1.30.0']), 'Pod')
    const { containers, volumes } = pods(read(rendered[1]), 'Deployment').spec.template.spec

    const given = pod.spec as unknown as { containers: Container[]; volumes: object[] }
    assert.deepEqual(given.containers, containers.slice(0, 1))
    assert.deepEqual(given.volumes, volumes)
  })
}

const kubeconform = process.env['KUBECONFORM'] ?? 'kubeconform'
// The published schemas ("default"), or a folder with a folder v1.NN.n of schemas for each version.
const schemas = process.env['KUBERNETES_SCHEMAS']
const location =
  schemas === 'default' ? schemas : `${schemas}/{{.NormalizedKubernetesVersion}}/{{.ResourceKind}}{{.KindSuffix}}.json`

for (const version of schemas === undefined ? [] : ['1.30.14', '1.33.5', '1.35.0', '1.36.0', '1.37.0'])
  test(`Kubernetes ${version} has the resources of the charts, with all their fields`, () => {
    const options = ['-strict', '-skip', Object.keys(definitions).join(','), '-kubernetes-version', version]
    const args = [...options, '-schema-location', location, ...inKubernetes, ...variants]
    const { status, stdout, stderr } = spawnSync(kubeconform, args, { cwd: root, encoding: 'utf8' })
    assert.equal(status, 0, stderr + stdout)
  })

for (const file of files)
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
