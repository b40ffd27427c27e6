// All parts of a chaos run: Redis, a provider, applications and replicas, between them the network.
import { randomBytes } from 'node:crypto'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { issueCertificates } from '../test/support/certificates.ts'
import { root } from '../test/support/command.ts'
import { freePort } from '../test/support/free-port.ts'
import type { RedisTls, Scope } from '../test/support/redis.ts'
import { cookieName, isPlain, startApplication } from './application.ts'
import type { Site } from './browser.ts'
import { startDecisionPoint } from './decision-point.ts'
import type { HistoryEvent } from './history.ts'
import { Network } from './network.ts'
import { applicationOf, applications, people, targets, timeouts } from './parties.ts'
import { plantFault } from './plants.ts'
import { audiences, type ChaosProvider, startChaosProvider } from './provider.ts'
import { Replica, type ReplicaParts } from './replica.ts'
import type { Setup } from './setup.ts'
import { startStore, type Store } from './store.ts'
import { Touches } from './touches.ts'

export interface World {
  readonly network: Network
  readonly touches: Touches
  readonly store: Store
  readonly provider: ChaosProvider
  readonly replicas: readonly Replica[]
  readonly site: Site
  readonly adminToken: string
  /** Begins to seal with a new key: all replicas learn it before the first one uses it. */
  rotateSessionKeys(): Promise<void>
  /** Takes all other keys away after that. */
  withdrawSessionKeys(): Promise<void>
}

export interface WorldParts {
  readonly setup: Setup
  /** For the configuration and the logs of the replicas. */
  readonly folder: string
  readonly record: (event: HistoryEvent) => void
  readonly say: (text: string) => void
  /** The file of another build of the gateway, `main.js`. */
  readonly otherBuild: string
  /** A fault of the gateway itself, in both builds: a name in plants.ts. */
  readonly plant: string | undefined
}

export async function startChaosWorld(
  scope: Scope,
  { setup, folder, record, say, otherBuild, plant }: WorldParts,
): Promise<World> {
  mkdirSync(folder, { recursive: true })
  const touches = new Touches(record)
  scope.after(() => touches.settleBefore(Infinity))
  const network = new Network(touches)
  scope.after(() => network.close())
  const store = await startStore(scope, network, setup, folder)
  const certificate = setup.tls ? issueCertificates().server : undefined
  const scheme = setup.tls ? 'https' : 'http'
  const url = `${scheme}://127.0.0.1:${await freePort()}`
  const secrets = { CLIENT_SECRET: randomBytes(24).toString('hex'), ADMIN_TOKEN: randomBytes(24).toString('hex') }
  const env = { ...secrets, ...(store.file !== undefined && { CHAOS_SESSIONS: store.file }) }
  const provider = await startChaosProvider(scope, { network, record, url, client_secret: env.CLIENT_SECRET, people })
  const upstreams = await Promise.all(
    targets.map(async (name) => ({ name, url: await startApplication(scope, name, { network, record, certificate }) })),
  )
  const decisions = await startDecisionPoint(scope, network)
  const keys = sessionKeys(folder)
  const builds = [
    copyOf(join(root, 'dist', 'main.js'), join(folder, 'build')),
    copyOf(otherBuild, join(folder, 'other')),
  ] as const
  if (plant !== undefined) for (const build of builds) plantFault(plant, dirname(build))
  const yaml = (ports: Ports) =>
    configuration(ports, {
      setup,
      url,
      issuer: provider.issuer,
      store,
      upstreams,
      certificate,
      decisions,
      keys: keys.files,
    })
  const replicas = await Promise.all(
    setup.replicas.map((name) => Replica.create({ name, folder, network, record, say, scheme, env, yaml, builds })),
  )
  scope.after(() => Promise.all(replicas.map((replica) => replica.kill())))
  await Promise.all(replicas.map((replica) => replica.start()))
  const [node] = store.nodes
  const clients = network.clientsOf(node?.name ?? '')
  for (const { name } of node === undefined ? [] : replicas)
    if (!clients.has(name)) throw new Error(`${name} does not use its own address`)
  const reload = () => Promise.all(replicas.map((replica) => replica.reload()))
  const rotateSessionKeys = async () => {
    keys.files.push(keys.create())
    await reload()
    keys.files.unshift(keys.files.pop() as string)
    await reload()
  }
  let ids = 0
  return {
    ...{ network, touches, store, provider, replicas, adminToken: env.ADMIN_TOKEN },
    site: {
      url,
      replicas,
      record,
      issuedFor: (code) => provider.issuedFor(code),
      id: (prefix) => `${prefix}${(ids += 1)}`,
    },
    rotateSessionKeys,
    withdrawSessionKeys: async () => {
      await rotateSessionKeys()
      keys.files.splice(1)
      await reload()
    },
  }
}

type Ports = Parameters<ReplicaParts['yaml']>[0]

interface Around {
  readonly setup: Setup
  readonly url: string
  readonly issuer: string
  readonly store: Store
  readonly upstreams: readonly { readonly name: string; readonly url: string }[]
  readonly certificate: RedisTls | undefined
  /** The URL of the policy decision point. */
  readonly decisions: string
  /** The files of the session keys. The first one seals. */
  readonly keys: readonly string[]
}

/** The configuration of a replica. */
function configuration(
  { listen, admin }: Ports,
  { setup, url, issuer, store, upstreams, certificate, decisions, keys }: Around,
): string {
  const { workers, grace } = setup
  return `version: 1
listen: { address: "127.0.0.1:${listen}"${certificate === undefined ? '' : `, tls: { cert_file: ${certificate.cert}, key_file: ${certificate.key} }`} }
workers: ${workers}
admin: { listen: "127.0.0.1:${admin}", page: { token: { env: ADMIN_TOKEN } } }
external_url: ${url}
trusted_proxies: [127.0.0.0/8]
shutdown: { drain_timeout: 2s }
log: { level: debug, access: true }
provider:
  issuer: ${issuer}
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
  timeout: 3s
  signals: { audience: ["${audiences.signals}"] }
session:
  keys: [${keys.map((file) => `{ file: ${file} }`).join(', ')}]
  store: ${store.yaml}
  device_binding: { cookie_lifetime: ${timeouts.boundCookie / 1000}s }
  idle_timeout: ${timeouts.idle / 1000}s
  absolute_timeout: ${timeouts.absolute / 1000}s
${grace === 0 ? '' : `  store_outage_grace: ${grace / 1000}s\n`}  poll_userinfo: 10s
upstreams:
${applications.map((name) => `  ${name}:\n${upstreamOf(name, { upstreams, certificate, decisions })}`).join('\n')}
`
}

/**
 * All applications have sessions of their own, which end by a call; one asks about each request.
 */
function upstreamOf(
  name: string,
  { upstreams, certificate, decisions }: Pick<Around, 'upstreams' | 'certificate' | 'decisions'>,
): string {
  const targets = upstreams.filter((target) => applicationOf(target.name) === name).map(({ url }) => `"${url}"`)
  return [
    `path: /${name}`,
    `targets: [${targets.join(', ')}]`,
    `headers: { X-Sub: sub, X-Sid: sid${name === 'api' ? ', Authorization: { bearer: exchanged_token }' : ''} }`,
    `session_cookies: [${cookieName}]`,
    `logout: { call: /${name}/logout }`,
    ...(certificate !== undefined && !isPlain(name) ? [`ca_file: ${certificate.ca}`, 'server_name: localhost'] : []),
    ...(certificate !== undefined && name === 'orders' ? ['protocol: h2'] : []),
    ...(name === 'api' ? programs : []),
    ...(name === 'files' ? [`authorize_with: { url: "${decisions}", timeout: 2s }`] : []),
  ]
    .map((line) => `    ${line}`)
    .join('\n')
}

/** What the application has that programs use, and that needs a token of its own. */
const programs = [
  `access_tokens: { audience: ["${audiences.calls}"] }`,
  `token_exchange: { audience: ${audiences.api} }`,
  'rules: [{ path: "/api/*", access_tokens: true }]',
]

/** Copies a build, which may be built anew during the run. Returns the file of the copy. */
function copyOf(program: string, folder: string): string {
  cpSync(dirname(program), folder, { recursive: true })
  return join(folder, basename(program))
}

/** The files of the session keys. The first one seals, all can open. */
function sessionKeys(folder: string) {
  let count = 0
  const create = () => {
    const file = join(folder, `key-${(count += 1)}`)
    writeFileSync(file, randomBytes(32).toString('base64'))
    return file
  }
  return { files: [create()], create }
}
