import assert from 'node:assert/strict'
import { posix } from 'node:path'
import { test } from 'node:test'
import { request } from 'undici'
import manifest from '../../package.json' with { type: 'json' }
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import {
  type Container,
  documentsIn,
  gatewayConfig,
  gatewayFileIn,
  inDockerfile,
  inKubernetes,
  type Labels,
  type Manifest,
  read,
  secretFilesOf,
} from './examples.ts'

/** Whether a selector matches pods with these labels. */
const selects = (selector: Labels, labels: Labels) =>
  Object.keys(selector).length > 0 && Object.entries(selector).every(([name, value]) => labels[name] === value)

const all = (manifests: readonly Manifest[], kind: string) => manifests.filter((one) => one.kind === kind)

function only<T>(found: readonly T[], what: string): T {
  assert.equal(found.length, 1, what)
  return found[0] as T
}

const portNamed = ({ ports }: Container, name: string) => ports.find((port) => port.name === name)?.containerPort

/**
 * The peers that network policies admit to a port of pods with these labels.
 *
 * @throws when no policy selects the pods, because then all peers are admitted
 */
function mayReach(manifests: readonly Manifest[], labels: Labels, port: number) {
  const policies = all(manifests, 'NetworkPolicy').filter(({ spec }) => selects(spec.podSelector.matchLabels, labels))
  assert.ok(policies.length > 0, `no network policy is about ${JSON.stringify(labels)}`)
  return policies.flatMap(({ spec }) => {
    assert.deepEqual(spec.policyTypes, ['Ingress'])
    return spec.ingress.flatMap(({ from, ports }) => {
      assert.ok(from.length > 0 && ports.length > 0, 'a rule without peers or ports lets everybody in')
      return ports.some((allowed) => allowed.port === port) ? from : []
    })
  })
}

/**
 * The security context that the Pod Security Standard "restricted" requires, and a read-only root
 * file system.
 */
const restricted = {
  runAsNonRoot: true,
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
}

/** The parsed content of a file. */
function deployment(path: string) {
  const manifests = documentsIn(read(path))
  const text = gatewayFileIn(manifests)
  const workload = only(
    all(manifests, 'Deployment').filter(({ spec }) =>
      spec.template.spec.containers.some(({ name }) => name === 'gatehouse'),
    ),
    'one Deployment has the gateway',
  )
  const { containers } = workload.spec.template.spec
  const gateway = containers.find(({ name }) => name === 'gatehouse') as Container
  const { labels } = workload.spec.template.metadata
  return { manifests, text, config: gatewayConfig(text), workload, pod: workload.spec.template.spec, gateway, labels }
}

for (const path of inKubernetes) {
  const { manifests, text, config, workload, pod, gateway, labels } = deployment(path)
  const drainSeconds = config.shutdown.drainTimeoutMs / 1000
  const preStopSeconds = gateway.lifecycle?.preStop.sleep.seconds ?? 0

  test(`${path}: image, user, ports and files match the Dockerfile and the configuration`, () => {
    const [file = ''] = (JSON.parse(inDockerfile('CMD')) as string[]).slice(-1)
    const { runAsUser, runAsGroup } = gateway.securityContext
    const mountOf = (folder: string) => gateway.volumeMounts?.find(({ mountPath }) => mountPath === folder)
    const volumeAt = (folder: string) => pod.volumes?.find(({ name }) => name === mountOf(folder)?.name)

    assert.equal(gateway.image.split(':').at(-1), manifest.version)
    assert.equal(`${runAsUser}:${runAsGroup}`, inDockerfile('USER'))
    assert.equal(portNamed(gateway, 'gatehouse'), config.listen.port)
    assert.equal(String(config.listen.port), inDockerfile('EXPOSE'))
    assert.equal(portNamed(gateway, 'gatehouse-admin'), config.admin?.port)
    // The kubelet sends its requests from outside the pod.
    assert.deepEqual([config.listen.host, config.admin?.host], ['0.0.0.0', '0.0.0.0'])
    // A mounted file, unlike a folder, would never show a change.
    assert.equal(mountOf(posix.dirname(file))?.subPath, undefined)
    assert.equal(
      volumeAt(posix.dirname(file))?.configMap?.name,
      only(all(manifests, 'ConfigMap'), 'one ConfigMap').metadata.name,
    )
    for (const secret of secretFilesOf(text))
      assert.equal(volumeAt(posix.dirname(secret))?.secret?.secretName, 'gatehouse', secret)
  })

  test(`${path}: every container meets the restricted Pod Security Standard`, () => {
    for (const { spec } of all(manifests, 'Deployment')) {
      assert.equal(spec.template.spec.automountServiceAccountToken, false)
      for (const { name, securityContext } of spec.template.spec.containers) {
        const { runAsUser, runAsGroup, ...others } = securityContext
        assert.ok(Number(runAsUser) > 0 && Number(runAsGroup) > 0, name)
        assert.deepEqual(others, restricted, name)
      }
    }
  })

  test(`${path}: nothing reaches the application around the gateway`, () => {
    const [upstream] = config.upstreams
    assert.ok(upstream)
    const { hostname, port } = upstream.url
    if (hostname === '127.0.0.1') {
      const application = only(
        pod.containers.filter(({ name }) => name !== 'gatehouse'),
        'the application is in the same pod',
      )
      assert.equal(application.ports[0]?.containerPort, Number(port))
      assert.deepEqual(mayReach(manifests, labels, Number(port)), [])
    } else {
      const applicationLabels = { 'app.kubernetes.io/name': hostname }
      const peers = mayReach(manifests, applicationLabels, Number(port))
      assert.ok(peers.length > 0)
      for (const { podSelector, namespaceSelector } of peers) {
        assert.ok(podSelector !== undefined && selects(podSelector.matchLabels, labels))
        assert.equal(namespaceSelector, undefined)
      }
    }
  })

  test(`${path}: only the proxy of the Gateway reaches the gateway, and only monitoring reaches its metrics`, () => {
    const namespacesAt = (port: number) =>
      mayReach(manifests, labels, port).map(
        ({ namespaceSelector }) => namespaceSelector?.matchLabels['kubernetes.io/metadata.name'],
      )

    assert.deepEqual(namespacesAt(8080), ['gateways'])
    assert.deepEqual(namespacesAt(9090), ['monitoring'])
  })

  test(`${path}: Service and disruption budget select the gateway pods, and there are several of them`, () => {
    const services = all(manifests, 'Service').filter(({ spec }) => selects(spec.selector, labels))
    const service = only(services, 'one Service leads to the gateway')
    const budget = only(all(manifests, 'PodDisruptionBudget'), 'one budget')

    assert.equal(portNamed(gateway, service.spec.ports[0]?.targetPort ?? ''), config.listen.port)
    assert.ok(selects(budget.spec.selector.matchLabels, labels))
    assert.ok(selects(workload.spec.selector.matchLabels, labels))
    assert.ok(workload.spec.replicas > 1)
  })

  test(`${path}: a pod has time to drain, and the application next to the gateway stops after it`, () => {
    const graceSeconds = pod.terminationGracePeriodSeconds ?? 30

    assert.ok(preStopSeconds > 0)
    assert.ok(graceSeconds > preStopSeconds + drainSeconds)
    for (const { name, lifecycle } of pod.containers.filter((container) => container !== gateway)) {
      const waits = lifecycle?.preStop.sleep.seconds ?? 0
      assert.ok(waits >= preStopSeconds + drainSeconds && waits < graceSeconds, name)
    }
  })
}

test('The endpoints of the probes exist and report that the gateway is healthy', async (t) => {
  const around = await prepareGateway(t)
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
  await gateway.said('gatehouse is ready')

  for (const path of inKubernetes) {
    const { gateway: container } = deployment(path)
    for (const kind of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const) {
      const { port, path: asked } = container[kind]?.httpGet ?? assert.fail(`${path} has no ${kind}`)
      assert.equal(port, 'gatehouse-admin')
      const { statusCode, body } = await request(`${around.adminUrl}${asked}`)
      await body.dump()
      assert.equal(statusCode, 200, `${path}: ${asked}`)
    }
  }
})

test('Redis accepts connections of gateways only, and keeps every logout', () => {
  const redis = documentsIn(read('examples/kubernetes/redis.yaml'))
  const { spec } = only(all(redis, 'StatefulSet'), 'one StatefulSet')
  const peers = mayReach(redis, spec.template.metadata.labels, 6379)

  for (const path of inKubernetes.filter((name) => name.startsWith('examples/'))) {
    const { labels } = deployment(path)
    assert.ok(
      peers.every(({ podSelector }) => podSelector !== undefined && selects(podSelector.matchLabels, labels)),
      path,
    )
  }
  assert.ok(
    !peers.some(({ podSelector }) => selects(podSelector?.matchLabels ?? {}, { 'app.kubernetes.io/name': 'x' })),
  )
  assert.match(
    spec.template.spec.containers[0]?.args?.join(' ') ?? '',
    /--maxmemory-policy noeviction --save {2}--appendonly yes/,
  )
})
