import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { root } from '../support/command.ts'
import { type Container, documentsIn, type Manifest, read, rendered } from './examples.ts'

const component = 'examples/kubernetes/sidecar-component'
const podOf = (manifests: readonly Manifest[], name: string) =>
  manifests.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name)?.spec.template.spec
const gatewayIn = (containers: readonly Container[] = []) => containers.find(({ name }) => name === 'gatehouse')

test('The component adds the same container as the chart', () => {
  const inComponent = podOf(documentsIn(read(`${component}/pod.yaml`)), 'orders')
  const inChart = podOf(documentsIn(read(rendered[1])), 'orders')

  assert.deepEqual(gatewayIn(inComponent?.containers), gatewayIn(inChart?.containers))
})

test('The component has the network policy and the configuration of the example', () => {
  const example = documentsIn(read('examples/kubernetes/sidecar.yaml'))
  const [policy] = documentsIn(read(`${component}/network-policy.yaml`))

  assert.deepEqual(policy?.spec, example.find(({ kind }) => kind === 'NetworkPolicy')?.spec)
  assert.equal(
    read(`${component}/gateway.yaml`),
    example.find(({ kind }) => kind === 'ConfigMap')?.data?.['gateway.yaml'],
  )
})

const kustomize = process.env['KUSTOMIZE'] ?? 'kustomize'
const hasKustomize = spawnSync(kustomize, ['version']).error === undefined
// NAME.yaml in this folder is the output of helm template for a chart of that name.
const charts = process.env['SIDECAR_CHARTS']
const applications = [
  { name: 'orders', text: () => applicationAlone() },
  ...['grafana', 'nextcloud', 'wordpress'].map((name) => ({
    name,
    text: () => (charts === undefined ? undefined : readFileSync(join(charts, `${name}.yaml`), 'utf8')),
  })),
]

/** The application of the example without the gateway, as its own chart renders it. */
function applicationAlone(): string {
  const spec = {
    template: {
      metadata: { labels: { 'app.kubernetes.io/name': 'orders' } },
      spec: { containers: [{ name: 'orders', image: 'orders', ports: [{ name: 'http', containerPort: 3000 }] }] },
    },
  }
  const ports = [{ name: 'http', port: 80, targetPort: 'http' }]
  return [
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'orders' }, spec },
    { apiVersion: 'v1', kind: 'Service', metadata: { name: 'orders' }, spec: { ports } },
  ]
    .map((document) => JSON.stringify(document))
    .join('\n---\n')
}

/** The output of Kustomize for an application with the component in which its name stands. */
function withComponent(t: TestContext, name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-sidecar-'))
  t.after(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'gatehouse'))
  cpSync(join(root, component), join(folder, 'gatehouse'), { recursive: true })
  const file = join(folder, 'gatehouse', 'kustomization.yaml')
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll('name: orders', `name: ${name}`))
  writeFileSync(join(folder, 'application.yaml'), text)
  writeFileSync(join(folder, 'kustomization.yaml'), 'resources: [application.yaml]\ncomponents: [gatehouse]\n')
  const { status, stdout, stderr } = spawnSync(kustomize, ['build', folder], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return stdout
}

for (const { name, text } of hasKustomize ? applications : [])
  test(`Kustomize adds the gateway to ${name}, and changes nothing else`, (t) => {
    const plain = text()
    if (plain === undefined) return t.skip('SIDECAR_CHARTS names no folder')
    const before = documentsIn(plain).filter((document) => document !== null)
    const after = documentsIn(withComponent(t, name, plain))
    const { containers, volumes = [] } = podOf(after, name) ?? assert.fail('no Deployment')
    const service = after.find(({ kind, metadata }) => kind === 'Service' && metadata.name === name)
    const ports = containers.flatMap((container) => (container.ports ?? []).map((port) => port.name))

    assert.equal(containers.length, (podOf(before, name)?.containers.length ?? 0) + 1)
    assert.equal(volumes.length, (podOf(before, name)?.volumes?.length ?? 0) + 2)
    assert.equal(new Set(ports).size, ports.length, 'the names of the ports are unique')
    assert.equal(new Set(volumes.map((volume) => volume.name)).size, volumes.length)
    assert.equal(service?.spec.ports[0]?.targetPort, 'gatehouse')
    const changed = (documents: readonly Manifest[]) =>
      documents
        .filter(({ kind, metadata }) => !(metadata.name === name && ['Deployment', 'Service'].includes(kind)))
        .filter(({ metadata }) => metadata.name !== 'gatehouse')
        .map((document) => JSON.stringify(document, sorted))
        .toSorted()
    assert.deepEqual(changed(after), changed(before))
    assert.deepEqual(
      after.filter(({ metadata }) => metadata.name === 'gatehouse').map(({ kind }) => kind),
      ['ConfigMap', 'NetworkPolicy'],
    )
  })

/** Kustomize sorts the keys of maps. */
function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}
