import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import type { GatewayConfig } from '../../src/config/model/gateway.ts'
import { platformJwt } from '../support/client-keys.ts'
import { root } from '../support/command.ts'

/** A file of the project. */
export const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** The parts of Kubernetes manifests that these tests read. */
export interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Labels }
  readonly data?: Readonly<Record<string, string>>
  readonly spec: Spec
}
export type Labels = Readonly<Record<string, string>>

export interface Spec {
  readonly replicas: number
  readonly strategy?: object
  readonly selector: Labels & { readonly matchLabels: Labels }
  readonly template: {
    readonly metadata: { readonly labels: Labels; readonly annotations?: Labels }
    readonly spec: Pod
  }
  readonly ports: readonly { readonly port: number; readonly targetPort: string }[]
  readonly podSelector: { readonly matchLabels: Labels }
  readonly policyTypes: readonly string[]
  readonly ingress: readonly {
    readonly from: readonly Peer[]
    readonly ports: readonly { readonly port: number }[]
  }[]
}
export interface Peer {
  readonly podSelector?: { readonly matchLabels: Labels }
  readonly namespaceSelector?: { readonly matchLabels: Labels }
}
export interface Pod {
  readonly automountServiceAccountToken: boolean
  readonly terminationGracePeriodSeconds?: number
  readonly securityContext?: { readonly seccompProfile?: { readonly type: string }; readonly fsGroup?: number }
  readonly containers: readonly Container[]
  readonly volumes?: readonly {
    readonly name: string
    readonly configMap?: { readonly name: string }
    readonly secret?: { readonly secretName: string }
    readonly persistentVolumeClaim?: { readonly claimName: string }
  }[]
}
export interface Container {
  readonly name: string
  readonly image: string
  readonly args?: readonly string[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly startupProbe?: Probe
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } }
  readonly securityContext: Readonly<Record<string, unknown>>
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string; readonly subPath?: string }[]
}
export interface Probe {
  readonly httpGet: { readonly port: string; readonly path: string }
}

/**
 * The documents of a YAML file. @throws {Error} when it is not YAML, or not as Kubernetes and
 * Compose read it (YAML 1.1)
 */
export function documentsIn<T = Manifest>(text: string): T[] {
  return parseAllDocuments(text, { version: '1.1' }).map((document) => {
    const [fault] = [...document.errors, ...document.warnings]
    if (fault !== undefined) throw new Error(fault.message)
    return document.toJS() as T
  })
}

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-examples-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const secrets: Readonly<Record<string, string>> = {
  client_secret: 'the client secret of an example\n',
  session_key: `${Buffer.alloc(32, 7).toString('base64')}\n`,
  redis_password: 'the redis password of an example\n',
  token: platformJwt(),
}
mkdirSync(join(folder, 'secrets'))
for (const [name, value] of Object.entries(secrets)) writeFileSync(join(folder, 'secrets', name), value)

/** The secret files that a gateway configuration names. */
export function secretFilesOf(text: string): string[] {
  return [...text.matchAll(/\bfile: ([^\s}]+)/g)].map(([, path = '']) => path)
}

let count = 0
/** Writes a gateway configuration and its secrets to files. */
export function gatewayFile(text: string): string {
  const file = join(folder, `${(count += 1)}.yaml`)
  const inPlace = secretFilesOf(text).reduce(
    (changed, path) => changed.replaceAll(path, join(folder, 'secrets', basename(path))),
    text,
  )
  writeFileSync(file, inPlace)
  return file
}

/** @throws {Error} with the diagnostics when the configuration is invalid */
export function gatewayConfig(text: string): GatewayConfig {
  const loaded = loadConfig(gatewayFile(text), {})
  if (!loaded.ok) throw new Error(loaded.diagnostics.map(({ path, message }) => `${path}: ${message}`).join('\n'))
  return loaded.config
}

/** The output of `helm template` for the charts: see helm.test.ts. */
export const rendered = ['test/deploying/rendered/standalone.yaml', 'test/deploying/rendered/sidecar.yaml'] as const

/** Further values of the charts, rendered in the same way. */
export const variants = [
  'test/deploying/rendered/options.yaml',
  'test/deploying/rendered/ext-authz.yaml',
  'test/deploying/rendered/file.yaml',
  'test/deploying/rendered/without-secrets.yaml',
] as const

/** The manifest file of each way to run in Kubernetes. */
export const inKubernetes = ['examples/kubernetes/standalone.yaml', 'examples/kubernetes/sidecar.yaml', ...rendered]

/** Every gateway configuration in the examples: its path and its text. */
export function gatewayFiles(): (readonly [string, string])[] {
  const files = ['examples/compose/gatehouse/gateway.yaml', 'examples/systemd/gateway.yaml']
  return [
    ...files.map((path) => [path, read(path)] as const),
    ...[...inKubernetes, ...variants].map((path) => [path, gatewayFileIn(documentsIn(read(path)))] as const),
  ]
}

/** The gateway configuration in a ConfigMap. */
export function gatewayFileIn(manifests: readonly Manifest[]): string {
  const text = manifests.find(({ kind }) => kind === 'ConfigMap')?.data?.['gateway.yaml']
  if (text === undefined) throw new Error('there is no ConfigMap with a gateway.yaml')
  return text
}

/** The value of an instruction in the Dockerfile. */
export function inDockerfile(instruction: string): string {
  const all = read('Dockerfile').replaceAll(/\\\n\s*/g, '')
  return (
    all
      .match(new RegExp(`^(?: *)${instruction} (.*)$`, 'gm'))
      ?.at(-1)
      ?.trim()
      .slice(instruction.length + 1) ?? ''
  )
}
