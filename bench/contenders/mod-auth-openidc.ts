import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { find, folderFor, versionOf, type Bed } from '../bed.ts'
import { startProgram, untilListening } from '../process.ts'
import type { Contender, Listening, Setting } from './contender.ts'

const modules = '/usr/lib/apache2/modules'

/**
 * Apache httpd with mod_auth_openidc: all claims as headers, the session in Redis or in shared
 * memory.
 */
export function modAuthOpenidc(cache: 'redis' | 'shm'): Contender {
  const name = `mod-auth-openidc-${cache}`
  return {
    name,
    title: `mod_auth_openidc, sessions in ${cache === 'redis' ? 'Redis' : 'shared memory'}`,
    signsIn: true,
    // Its shared memory has 20,000 entries, and a sign-in takes more than two.
    can: new Set(['tls', 'http2', 'websockets', ...(cache === 'redis' ? (['many-sessions'] as const) : [])]),
    logoutPath: '/oidc/callback?logout=backchannel',
    missing: () => {
      if (find('apache2') === undefined) return 'apache2 is not installed'
      return existsSync(`${modules}/mod_auth_openidc.so`) ? undefined : 'libapache2-mod-auth-openidc is not installed'
    },
    version: () =>
      `${versionOf('dpkg-query', ['-W', '-f', '${Version}', 'libapache2-mod-auth-openidc'], /^(\S+)/)}, ` +
      `httpd ${versionOf('apache2', ['-v'], /Apache\/(\S+)/)}`,
    runsWith: () => '`mpm_event`, `StartServers 2`, `ThreadsPerChild 192`',
    start: (bed, setting) => run(bed, setting, name, cache),
  }
}

async function run(bed: Bed, { port, cpus, tls }: Setting, name: string, cache: 'redis' | 'shm'): Promise<Listening> {
  const client_id = `${name}-${port}`
  const folder = folderFor(bed, client_id)
  const redirect_uri = `${tls ? 'https' : 'http'}://127.0.0.1:${port}/oidc/callback`
  bed.provider.register({ client_id, client_secret: secret, redirect_uri })
  const file = join(folder, 'httpd.conf')
  writeFileSync(file, configuration(bed, { folder, client_id, port, tls, cache }))
  // Its child processes run as the user nobody.
  chmodSync(bed.folder, 0o755)
  chmodSync(folder, 0o777)
  const program = startProgram({
    command: find('apache2') as string,
    args: ['-DFOREGROUND', '-f', file],
    cpus,
    logFile: join(folder, 'output.log'),
  })
  await untilListening(port)
  return program
}

const secret = 'correct-horse-battery-staple'

interface Particulars extends Pick<Setting, 'port' | 'tls'> {
  readonly folder: string
  readonly client_id: string
  readonly cache: 'redis' | 'shm'
}

function configuration(bed: Bed, { folder, client_id, port, tls, cache }: Particulars): string {
  const load = (module: string) => `LoadModule ${module}_module ${modules}/mod_${module}.so`
  const loaded = [
    'mpm_event',
    'authn_core',
    'authz_core',
    'authz_user',
    'headers',
    'proxy',
    'proxy_http',
    'auth_openidc',
    ...(tls ? ['socache_shmcb', 'ssl', 'http2'] : []),
  ]
  const sessions =
    cache === 'redis'
      ? `OIDCCacheType redis\nOIDCRedisCacheServer 127.0.0.1:${bed.redisPort}\nOIDCRedisCacheDatabase 2`
      : 'OIDCCacheType shm\nOIDCCacheShmMax 20000\nOIDCCacheShmEntrySizeMax 32768'
  return `ServerRoot /etc/apache2
ServerName 127.0.0.1
PidFile ${folder}/httpd.pid
DefaultRuntimeDir ${folder}
Mutex file:${folder} default
ErrorLog ${folder}/error.log
LogLevel warn
Listen 127.0.0.1:${port}
${loaded.map(load).join('\n')}
${process.getuid?.() === 0 ? 'User nobody\nGroup nogroup' : ''}
${tls ? `Protocols h2 http/1.1\nSSLEngine on\nSSLCertificateFile ${tls.cert}\nSSLCertificateKeyFile ${tls.key}` : ''}
StartServers 2
ServerLimit 2
ThreadLimit 192
ThreadsPerChild 192
MaxRequestWorkers 384
MinSpareThreads 1
MaxSpareThreads 384
MaxConnectionsPerChild 0
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
Timeout 300
ProxyTimeout 300
LimitRequestFieldSize 65536
ProxyPreserveHost On
ProxyPass /oidc/ !
ProxyPass / http://${bed.upstream}/ keepalive=On upgrade=websocket
OIDCProviderMetadataURL ${bed.provider.issuer}/.well-known/openid-configuration
OIDCProviderBackChannelLogoutSupported On
OIDCClientID ${client_id}
OIDCClientSecret ${secret}
OIDCRedirectURI ${tls ? 'https' : 'http'}://127.0.0.1:${port}/oidc/callback
OIDCCryptoPassphrase a-passphrase-for-the-bench-0123456789
OIDCScope "openid profile email offline_access"
OIDCPKCEMethod S256
OIDCSessionType server-cache
${sessions}
OIDCRemoteUserClaim sub
OIDCPassClaimsAs headers
OIDCRefreshAccessTokenBeforeExpiry 30
OIDCSessionInactivityTimeout 3600
OIDCStateMaxNumberOfCookies 50 true
OIDCInfoHook iat access_token access_token_expires id_token userinfo session
<Location />
  AuthType openid-connect
  Require valid-user
</Location>
`
}
