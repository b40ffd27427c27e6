import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import { parse } from 'yaml'
import definitions from './crds.json' with { type: 'json' }
import { documentsIn, type Manifest, read, rendered, variants } from './examples.ts'

/**
 * crds.json has the published schemas of custom resources, without texts: from `source`, an Apache
 * 2.0 repository and its commit. Unknown fields are errors. Of SecurityPolicy it has only the
 * fields for authorization.
 */
const schemas = new Map(Object.entries(definitions))
const ajv = new Ajv({ strict: false, allErrors: true })
const isCustom = ({ kind }: Manifest) => schemas.has(kind)
const files = [...rendered, ...variants, 'examples/kubernetes/gateway-api.yaml']

for (const path of files)
  test(`${path}: each custom resource complies with its published schema`, () => {
    const resources = documentsIn<Manifest & { apiVersion: string }>(read(path)).filter(isCustom)
    for (const { kind, apiVersion, spec } of resources) {
      const schema = schemas.get(kind)
      assert.equal(apiVersion, schema?.apiVersion)
      assert.ok(ajv.validate(schema?.spec ?? {}, spec), `${kind}: ${ajv.errorsText()}`)
    }
  })

test('The charts render each of these custom resources', () => {
  const kinds = files.flatMap((path) => documentsIn(read(path)).map(({ kind }) => kind))
  assert.deepEqual(
    [...schemas.keys()].filter((kind) => !kinds.includes(kind)),
    [],
  )
})

interface ExtAuthz {
  readonly rules: readonly {
    readonly matches: readonly { readonly path: { readonly type: string; readonly value: string } }[]
    readonly filters?: readonly { readonly urlRewrite: { readonly path: { readonly replaceFullPath: string } } }[]
  }[]
  readonly extAuth: { readonly failOpen: boolean; readonly grpc: { readonly backendRefs: readonly object[] } }
  readonly action: string
}

test('A proxy that asks fails closed, and clients cannot ask', () => {
  const manifests = documentsIn(read('test/deploying/rendered/ext-authz.yaml'))
  const specOf = (wanted: string) => manifests.find(({ kind }) => kind === wanted)?.spec as unknown as ExtAuthz
  const [asked, own] = specOf('HTTPRoute').rules
  const service = manifests.find(({ kind }) => kind === 'Service')

  assert.equal(asked?.matches[0]?.path.value, '/.gatehouse/forward-auth')
  assert.equal(asked.filters?.[0]?.urlRewrite.path.replaceFullPath, '/.gatehouse/not-found')
  assert.equal(own?.matches[0]?.path.value, '/.gatehouse')
  assert.equal(specOf('SecurityPolicy').extAuth.failOpen, false)
  assert.deepEqual(specOf('SecurityPolicy').extAuth.grpc.backendRefs, [
    { name: service?.metadata.name, port: service?.spec.ports.find(({ port }) => port === 9191)?.port },
  ])
  assert.equal(specOf('AuthorizationPolicy').action, 'CUSTOM')
})

test('Sessions in a file have one pod at a time, and a volume that the gateway may write to', () => {
  const manifests = documentsIn(read('test/deploying/rendered/file.yaml'))
  const { spec } = manifests.find(({ kind }) => kind === 'Deployment') as Manifest
  const { containers, volumes = [], securityContext } = spec.template.spec
  const volume = volumes.find(({ name }) => name === 'gatehouse-sessions')
  const mount = containers[0]?.volumeMounts?.find(({ name }) => name === 'gatehouse-sessions')

  assert.deepEqual([spec.replicas, spec.strategy], [1, { type: 'Recreate' }])
  assert.equal(mount?.mountPath, '/var/lib/gatehouse')
  assert.equal(securityContext?.fsGroup, containers[0]?.securityContext['runAsGroup'])
  assert.ok(
    manifests.some(
      ({ kind, metadata }) =>
        kind === 'PersistentVolumeClaim' && metadata.name === volume?.persistentVolumeClaim?.claimName,
    ),
  )
})

test('The chart installs each alert of alerts.yaml, unchanged', () => {
  const rule = documentsIn(read('test/deploying/rendered/options.yaml')).find(({ kind }) => kind === 'PrometheusRule')

  assert.equal(rule?.metadata.labels?.['release'], 'prometheus')
  assert.deepEqual(rule.spec, parse(read('charts/gatehouse/alerts.yaml')))
})

test('A longer drain_timeout gives a pod more time', () => {
  const { spec } = documentsIn(read('test/deploying/rendered/options.yaml')).find(
    ({ kind }) => kind === 'Deployment',
  ) as Manifest

  assert.equal(spec.template.spec.terminationGracePeriodSeconds, 5 + 60 + 10)
  // The autoscaler decides.
  assert.equal('replicas' in spec, false)
})
