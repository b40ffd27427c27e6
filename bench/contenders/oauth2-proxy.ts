import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { find, folderFor, versionOf, type Bed } from '../bed.ts'
import { claimNames } from '../people.ts'
import { slowReader, startProgram, untilListening } from '../process.ts'
import type { Contender, Listening, Setting } from './contender.ts'
import { goEnvironment, goRunsWith } from './go-program.ts'

const secret = 'correct-horse-battery-staple'

/** oauth2-proxy with sessions in Redis or in the cookie: ten claims as headers, no request log. */
export function oauth2Proxy(store: 'redis' | 'cookie'): Contender {
  const name = `oauth2-proxy-${store}`
  return {
    name,
    title: `oauth2-proxy, sessions in ${store === 'redis' ? 'Redis' : 'cookies'}`,
    signsIn: true,
    can: new Set(['tls', 'http2', 'websockets', 'many-sessions', 'many-sidecars']),
    missing: () => (find('oauth2-proxy') ? undefined : 'there is no oauth2-proxy on the PATH'),
    version: () => {
      const said = versionOf('oauth2-proxy', ['--version'], /oauth2-proxy (.*)/)
      return said.replace('undefined', moduleVersion(find('oauth2-proxy') ?? '') ?? 'not in the binary')
    },
    runsWith: goRunsWith,
    start: (bed, setting) => run(bed, setting, name, store),
  }
}

/** The version that `go install` has written into a program. */
function moduleVersion(file: string): string | undefined {
  return /mod\tgithub\.com\/oauth2-proxy\/oauth2-proxy\/v\d+\t(\S+)/.exec(readFileSync(file, 'latin1'))?.[1]
}

async function run(
  bed: Bed,
  { port, cpus, tls, publicPath, logsTo }: Setting,
  name: string,
  store: 'redis' | 'cookie',
): Promise<Listening> {
  const client_id = `${name}-${port}`
  const folder = folderFor(bed, client_id)
  const redirect_uri = `${tls ? 'https' : 'http'}://127.0.0.1:${port}/oauth2/callback`
  bed.provider.register({ client_id, client_secret: secret, redirect_uri })
  const [settings, providers] = [join(folder, 'oauth2-proxy.cfg'), join(folder, 'oauth2-proxy.yaml')]
  const redis = `redis_connection_url="redis://127.0.0.1:${bed.redisPort}/1"`
  writeFileSync(
    settings,
    `email_domains=["*"]
cookie_secret="0123456789abcdef0123456789abcdef"
cookie_secure=${tls !== undefined}
cookie_refresh="30m"
redirect_url="${redirect_uri}"
session_store_type="${store}"
${store === 'redis' ? redis : ''}
skip_provider_button=true
request_logging=${logsTo !== undefined}
${publicPath === undefined ? '' : `skip_auth_routes=["GET=^${publicPath}$"]`}
auth_logging=false
`,
  )
  writeFileSync(providers, providersFile(bed, { port, tls }, client_id))
  const program = startProgram({
    command: find('oauth2-proxy') as string,
    args: ['--config', settings, '--alpha-config', providers],
    cpus,
    env: goEnvironment({ cpus }),
    logFile: join(folder, 'output.log'),
    ...(logsTo !== undefined && { stdout: slowReader() }),
  })
  await untilListening(port)
  return program
}

function providersFile(bed: Bed, { port, tls }: Pick<Setting, 'port' | 'tls'>, client_id: string): string {
  const headers = claimNames.map(
    (claim) => `  - name: X-${claim.replaceAll('_', '-')}
    values: [{ claimSource: { claim: ${claim === 'sub' ? 'user' : claim} } }]`,
  )
  return `injectRequestHeaders:
${headers.join('\n')}
metricsServer: {}
providers:
  - id: bench
    provider: oidc
    clientID: ${client_id}
    clientSecret: ${secret}
    scope: "openid profile email offline_access"
    code_challenge_method: S256
    profileURL: "${bed.provider.issuer}/oauth/userinfo"
    additionalClaims: [name, given_name, family_name, employee_number, department, cost_centre]
    oidcConfig:
      issuerURL: ${bed.provider.issuer}
      emailClaim: email
      groupsClaim: groups
      audienceClaims: [aud]
      insecureSkipNonce: false
server:
  ${tls ? `secureBindAddress: 127.0.0.1:${port}\n  tls: { key: { fromFile: ${tls.key} }, cert: { fromFile: ${tls.cert} } }` : `bindAddress: 127.0.0.1:${port}`}
upstreamConfig:
  upstreams:
    - { id: application, path: /, uri: "http://${bed.upstream}", passHostHeader: true, proxyWebSockets: true, timeout: 1h }
`
}
