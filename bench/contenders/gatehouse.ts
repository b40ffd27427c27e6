import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { imageFlags } from '../../test/support/image.ts'
import { folderFor, type Bed } from '../bed.ts'
import type { FillPlace } from '../fill.ts'
import { claimNames } from '../people.ts'
import { builtGateway, readSlowly, startProgram, until } from '../process.ts'
import type { Contender, Listening, Setting } from './contender.ts'
import { nodeEnvironment, nodeRunsWith } from './node-program.ts'

/** What an upstream may have besides, as YAML of the upstream, and what its title says. */
const extras = {
  /** The session keeps a cookie of the application. */
  cookies: { title: 'session_cookies', headers: ['X-Session-Cookie: sub'], settings: () => ['session_cookies: [SID]'] },
  /** The application sends pages with its own address, which is replaced. */
  rewrite: {
    title: 'rewrite_content',
    headers: ['X-Page: sub'],
    settings: (port: number) => ['rewrite_content: true', `also_known_as: [http://127.0.0.2:${port}]`],
  },
  /** The application sends the same pages, and they stay as they are. */
  pages: { title: 'HTML', headers: ['X-Page: sub'], settings: () => [] },
  /** The application gets a signed identity. */
  signed: { title: 'signed_identity', headers: [], settings: () => ['signed_identity: true'] },
} as const

export function isExtra(name: string | undefined): name is keyof typeof extras {
  return name !== undefined && Object.hasOwn(extras, name)
}

/** Another build of the gateway, to compare it with this one. */
export interface Build {
  readonly name: string
  /** The path of its `main.js`. */
  readonly program: string
}

/** The built gateway: ten identity headers from UserInfo, and the access log on. */
export function gatehouse(store: 'redis' | 'memory', extra?: keyof typeof extras, build?: Build): Contender {
  const name = `gatehouse-${store}${extra === undefined ? '' : `-${extra}`}${build === undefined ? '' : `-${build.name}`}`
  return {
    name,
    title: `Gatehouse, sessions in ${store === 'redis' ? 'Redis' : 'memory'}${extra === undefined ? '' : `, with ${extras[extra].title}`}${build === undefined ? '' : ` (${build.name})`}`,
    signsIn: true,
    can: new Set([
      'tls',
      'http2',
      'websockets',
      'many-sessions',
      'many-sidecars',
      ...(store === 'redis' ? (['workers'] as const) : []),
    ]),
    logoutPath: '/.gatehouse/backchannel-logout',
    missing: () => undefined,
    version: () => manifest.version,
    runsWith: ({ workers }) => `${nodeRunsWith}; \`workers: ${workers}\``,
    start: (bed, setting) => run(bed, setting, { name, store, extra, program: build?.program ?? builtGateway }),
  }
}

const secrets = {
  CLIENT_SECRET: 'correct horse battery staple',
  SESSION_KEY: Buffer.alloc(32, 1).toString('base64'),
}

/** Where a gateway with its sessions in Redis has them. */
export function placeOf(bed: Bed, { name, port }: { readonly name: string; readonly port: number }): FillPlace {
  const client_id = `${name}-${port}`
  return {
    redis: `redis://127.0.0.1:${bed.redisPort}`,
    issuer: bed.provider.issuer,
    client_id,
    sessionKey: secrets.SESSION_KEY,
    keyPrefix: `${client_id}:`,
  }
}

interface Variant {
  readonly program: string
  readonly name: string
  readonly store: 'redis' | 'memory'
  readonly extra: keyof typeof extras | undefined
}

async function run(bed: Bed, setting: Setting, variant: Variant): Promise<Listening> {
  const { port, cpus, node, nodeOptions } = setting
  const origin = `${setting.tls ? 'https' : 'http'}://127.0.0.1:${port}`
  const client_id = `${variant.name}-${port}`
  const env = secrets
  bed.provider.register({
    client_id,
    client_secret: env.CLIENT_SECRET,
    redirect_uri: `${origin}/.gatehouse/callback`,
  })
  const folder = folderFor(bed, client_id)
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, configuration(bed, setting, origin, client_id, variant))
  // A start with the same port may have left its files.
  for (const name of ['log', 'first-lines', 'further-lines']) rmSync(join(folder, name), { force: true })
  // A process reads the log, as in production: the bench until the gateway is ready, then a reader
  // that reads as fast as it can.
  const firstLines = join(folder, 'first-lines')
  const rest = setting.logsTo === undefined ? `exec wc -l > ${folder}/further-lines` : readSlowly
  const reading = `sed -u '/gatehouse is ready/q' > ${firstLines}; ${rest}`
  // A pipe as containers have it. Node.js would make a socket.
  const pipe = join(folder, 'log')
  execFileSync('mkfifo', [pipe])
  const reader = spawn('sh', ['-c', `(${reading}) < "$0"`, pipe], { stdio: ['ignore', 'ignore', 'inherit'] })
  const stdout = openSync(pipe, 'r+')
  const program = startProgram({
    command: node,
    args: [...imageFlags, ...nodeOptions, variant.program, 'run', '--config', file],
    cpus,
    env: { ...env, ...nodeEnvironment(bed) },
    logFile: join(folder, 'errors'),
    stdout,
  })
  closeSync(stdout)
  // With several workers, the port is open before all of them serve.
  await until(
    () => existsSync(firstLines) && readFileSync(firstLines, 'utf8').includes('gatehouse is ready'),
    'Gatehouse is not ready',
  )
  const readToTheEnd = once(reader, 'exit')
  return {
    ...program,
    stop: async () => {
      await program.stop()
      await readToTheEnd
    },
    ...(setting.logsTo === undefined && {
      linesWritten: () => Number(readFileSync(join(folder, 'further-lines'), 'utf8')),
    }),
  }
}

function configuration(bed: Bed, setting: Setting, origin: string, client_id: string, variant: Variant): string {
  const { port, tls, workers } = setting
  const { store, extra } = variant
  const more = extra === undefined ? undefined : extras[extra]
  const listen = tls
    ? `{ address: "127.0.0.1:${port}", tls: { cert_file: ${tls.cert}, key_file: ${tls.key} } }`
    : `127.0.0.1:${port}`
  const headers = claimNames.map((claim) => `      X-${claim === 'sub' ? 'Remote-User' : headerName(claim)}: ${claim}`)
  return `version: 1
listen: ${listen}
external_url: ${origin}
workers: ${workers}
${setting.usualLimits === true ? '' : 'limits: { connections: 100000, per_client: { connections: 100000, sign_ins: 1000000/m, callbacks: 1000000/m } }'}
log: { access: true }
provider:
  issuer: ${bed.provider.issuer}
  client_id: ${client_id}
  client_secret: { env: CLIENT_SECRET }
session:
  keys: [{ env: SESSION_KEY }]
  store: ${store === 'memory' ? store : `{ redis: { url: "redis://127.0.0.1:${bed.redisPort}", key_prefix: "${client_id}:" } }`}
upstreams:
  application:
    url: http://${bed.upstream}
${setting.publicPath === undefined ? '' : `    rules: [{ path: ${setting.publicPath}, access: public }]`}
    # One person has all WebSockets of a scenario.
    max_streams: 65535
    max_streams_per_client: 65535
    headers:
${[...headers, ...(more?.headers ?? []).map((line) => `      ${line}`), ...(more?.settings(port) ?? []).map((line) => `    ${line}`)].join('\n')}
`
}

/** `cost_centre` → `Cost-Centre` */
function headerName(claim: string): string {
  return claim.replaceAll('_', '-').replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())
}
