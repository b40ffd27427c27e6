import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { elsewhere } from '../support/certificates.ts'
import { startCommand } from '../support/command.ts'
import { startConnectProxy } from '../support/connect-proxy.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { startProvider } from '../support/provider.ts'
import { tlsProvider } from '../support/tls-provider.ts'

// The program contains single files of undici. Tests in one process do not see what these files
// lack, because they load all of undici.
test('The built gateway reaches its provider through an HTTP proxy', async (t) => {
  const { tls, caFile } = tlsProvider(t)
  const { file, env, url, provider: unused } = await prepareGateway(t)
  const provider = await startProvider(t, {
    client_id: 'orders',
    client_secret: env['CLIENT_SECRET'] as string,
    redirect_uris: [`${url}/.gatehouse/callback`],
    post_logout_redirect_uris: [],
    backchannel_logout_uri: `${url}/.gatehouse/backchannel-logout`,
    tls,
    host: elsewhere,
  })
  const proxy = await startConnectProxy(t)
  writeFileSync(
    file,
    readFileSync(file, 'utf8')
      .replace(`issuer: ${unused.issuer}`, `issuer: ${provider.issuer}\n  ${caFile}`)
      .replace('provider:', `egress_proxy: { url: '${proxy.url}' }\nprovider:`),
  )
  const gateway = startCommand(t, ['run', '--config', file], { env })
  const { provider_found } = await gateway.said('gatehouse is ready')
  assert.equal(provider_found, true, gateway.out())
  assert.deepEqual([...new Set(proxy.tunnels)], [new URL(provider.issuer).host])
})
