import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test, type TestContext } from 'node:test'
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import { installDebian, Missing } from '../applications/installed.ts'
import { dataFolder, startProgram } from '../applications/programs.ts'
import { Browser } from '../support/browser.ts'
import { issueCertificates } from '../support/certificates.ts'
import { root } from '../support/command.ts'
import { freePort } from '../support/free-port.ts'
import { runReplica } from '../support/world.ts'
import { exchangeTls } from './raw-tls.ts'
import { last, placed, type Received, startApplication, startProviderFor, valuesOf } from './site.ts'
import { connectWebSocket } from './web-socket.ts'

/** A proxy that ends TLS in front of the gateway, with the configuration of its example. */
interface Front {
  readonly name: string
  /** Its file below examples/. */
  readonly example: string
  readonly start: (t: TestContext, file: string, url: URL) => Promise<unknown>
}

// Run by `npm run test:proxies`, like the proxies that ask the gateway.
const fronts: readonly Front[] = [
  {
    name: 'nginx',
    example: 'tls-front/nginx.conf',
    start: (t, file, url) => {
      installDebian({ 'nginx-light': '/usr/sbin/nginx' })
      const settings = `daemon off; pid ${file}.pid; error_log stderr;`
      return startProgram(t, ['/usr/sbin/nginx', '-c', file, '-e', 'stderr', '-g', settings], url)
    },
  },
  {
    name: 'HAProxy',
    example: 'tls-front/haproxy.cfg',
    start: (t, file, url) => {
      installDebian({ haproxy: '/usr/sbin/haproxy' })
      return startProgram(t, ['/usr/sbin/haproxy', '-db', '-f', file], url)
    },
  },
  {
    name: 'Caddy',
    example: 'tls-front/Caddyfile',
    start: (t, file, url) => {
      installDebian({ caddy: '/usr/bin/caddy' })
      const options = ['run', '--config', file, '--adapter', 'caddyfile']
      return startProgram(t, ['/usr/bin/caddy', ...options], url, { env: { HOME: join(file, '..') } })
    },
  },
  {
    name: 'Apache',
    example: 'tls-front/apache.conf',
    start: (t, file, url) => {
      installDebian({ apache2: '/usr/sbin/apache2' })
      const settings = [`PidFile ${file}.pid`, `ErrorLog ${file}.log`, 'User www-data', 'Group www-data']
      const options = ['-X', '-d', join(file, '..'), '-f', file, ...settings.flatMap((each) => ['-C', each])]
      return startProgram(t, ['/usr/sbin/apache2', ...options], url)
    },
  },
  {
    name: 'Fastify',
    example: 'fastify-front/server.mjs',
    start: (t, file, url) => startProgram(t, [process.execPath, file], url),
  },
]

/** Starts the gateway, the application and a front, on free ports. */
async function startFrontedSite(t: TestContext, front: Front) {
  const [port, gatewayPort] = [await freePort(), await freePort()]
  const url = `https://127.0.0.1:${port}`
  const { server } = issueCertificates()
  const before = getGlobalDispatcher()
  setGlobalDispatcher(new Agent({ connect: { ca: readFileSync(server.ca, 'utf8') } }))
  t.after(() => setGlobalDispatcher(before))
  const application = await startApplication(t)
  const provider = await startProviderFor(t, url)
  const folder = dataFolder(t)
  const certificate = [server.cert, server.key].map((file) => readFileSync(file ?? '', 'utf8'))
  writeFileSync(join(folder, 'wiki.pem'), certificate.join(''))
  const here = (...path: readonly string[]) =>
    placed(readFileSync(join(root, 'examples', ...path), 'utf8'), {
      ...{ url, provider, proxy: port, gateway: gatewayPort, application: application.port },
    })
      .replaceAll('/run/tls/wiki.pem', join(folder, 'wiki.pem'))
      .replaceAll('/run/tls/tls.crt', server.cert ?? '')
      .replaceAll('/run/tls/tls.key', server.key ?? '')
  await runReplica(t, here('tls-front', 'gateway.yaml'), { now: () => Date.now() })
  // Fastify finds its packages in the folder of this clone.
  const place = front.name === 'Fastify' ? join(root, 'node_modules', '.cache', 'gatehouse') : folder
  mkdirSync(place, { recursive: true })
  const file = join(place, `${port}-${front.example.replace(/.*\//, '')}`)
  writeFileSync(file, here(front.example))
  await front.start(t, file, new URL(url))
  return { url, port, ca: readFileSync(server.ca, 'utf8'), received: application.received }
}

const named = (process.env['PROXIES'] ?? '').split(',').filter((name) => name !== '')

for (const front of fronts.filter(({ name }) => named.length === 0 || named.includes(name.toLowerCase())))
  test(`${front.name} ends TLS in front of the gateway`, { timeout: 600_000 }, async (t) => {
    let site: Awaited<ReturnType<typeof startFrontedSite>>
    try {
      site = await startFrontedSite(t, front)
    } catch (error) {
      if (!(error instanceof Missing)) throw error
      return t.skip(error.message)
    }
    const { url, port, ca } = site
    const jane = new Browser('jane')

    await t.test('A person signs in, with a cookie for https, and the application gets the identity', async () => {
      const page = await jane.get(`${url}/page?a=1`)
      assert.deepEqual([page.status, page.url], [200, `${url}/page?a=1`])
      assert.ok(jane.cookies.has('__Host-gatehouse'))
      const request = last(site)
      assert.deepEqual(valuesOf(request, 'x-remote-user'), ['jane'])
      assert.deepEqual(valuesOf(request, 'x-forwarded-proto'), ['https'])
      assert.deepEqual(valuesOf(request, 'x-forwarded-host'), [new URL(url).host])
    })

    await t.test('What a client says about its address, host and scheme does not arrive', async () => {
      await jane.fetch(`${url}/page`, {
        headers: {
          'x-forwarded-for': '192.0.2.66',
          'x-forwarded-host': 'evil.example',
          'x-forwarded-proto': 'http',
          forwarded: 'for=192.0.2.66;host=evil.example',
          ...{ 'client-cert': ':ZXZpbA==:', 'x-request-id': 'evil', tracestate: 'evil=1' },
        },
      })
      const request = last(site)
      assert.doesNotMatch(JSON.stringify(request.headers), /192\.0\.2\.66|evil|ZXZpbA/)
      assert.deepEqual(valuesOf(request, 'x-forwarded-proto'), ['https'])
    })

    await t.test('A path arrives as the client sent it, and an ambiguous one is refused', async () => {
      const cookie = `__Host-gatehouse=${jane.cookies.get('__Host-gatehouse')?.value ?? ''}`
      const send = (path: string) =>
        exchangeTls(
          port,
          ca,
          `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nCookie: ${cookie}\r\nConnection: close\r\n\r\n`,
        )
      assert.equal(await send('/a%2Fb/%C3%A9?x=%20&y=a+b'), 200)
      assert.equal(last(site).url, '/a%2Fb/%C3%A9?x=%20&y=a+b')
      const before = site.received.length
      assert.equal(await send('/a/%2e%2e%2f%2e%2e/admin'), 400)
      assert.equal(site.received.length, before)
    })

    await t.test('A large form arrives whole', async () => {
      const body = 'x'.repeat(3_000_000)
      const { status } = await jane.fetch(`${url}/save`, { method: 'POST', body })
      assert.deepEqual([status, last(site).body.length], [200, body.length])
    })

    await t.test('A WebSocket opens for a page of this site only', async () => {
      const cookie = `__Host-gatehouse=${jane.cookies.get('__Host-gatehouse')?.value ?? ''}`
      const { status, message } = await connectWebSocket(`${url}/socket`, { cookie, origin: url, ca })
      assert.equal(status, 101)
      assert.deepEqual(valuesOf(JSON.parse(message) as Received, 'x-remote-user'), ['jane'])
      const before = site.received.length
      const foreign = await connectWebSocket(`${url}/socket`, { cookie, origin: 'https://evil.example', ca })
      assert.deepEqual([foreign.message, site.received.length - before], ['', 0])
    })
  })

if (named.length === 0 || named.includes('nginx'))
  test(
    'nginx sends the certificate that it has verified, and never one of a client',
    { timeout: 600_000 },
    async (t) => {
      try {
        installDebian({ 'nginx-light': '/usr/sbin/nginx' })
      } catch (error) {
        if (!(error instanceof Missing)) throw error
        return t.skip(error.message)
      }
      const [port, folder] = [await freePort(), dataFolder(t)]
      const { server, client } = issueCertificates()
      const gateway = await startApplication(t)
      const read = (name: string) => readFileSync(join(root, 'examples', 'tls-front', name), 'utf8')
      const verified = `ssl_client_certificate ${server.ca}; ssl_verify_client optional;`
      const config = read('nginx.conf')
        .replace('http {', 'http {\n  include client-cert.conf;')
        .replace('127.0.0.1:8443 ssl;', `127.0.0.1:${port} ssl; ${verified}`)
        .replace("Client-Cert ''", 'Client-Cert $client_cert')
        .replace('127.0.0.1:8080', `127.0.0.1:${gateway.port}`)
        .replace('/run/tls/tls.crt', server.cert ?? '')
        .replace('/run/tls/tls.key', server.key ?? '')
      writeFileSync(join(folder, 'client-cert.conf'), read('client-cert.conf'))
      writeFileSync(join(folder, 'nginx.conf'), config)
      const settings = `daemon off; pid ${join(folder, 'pid')}; error_log stderr;`
      const url = new URL(`https://127.0.0.1:${port}`)
      const before = getGlobalDispatcher()
      t.after(() => setGlobalDispatcher(before))
      const certificateSeen = async (connect: object) => {
        setGlobalDispatcher(new Agent({ connect: { ca: readFileSync(server.ca, 'utf8'), ...connect } }))
        await fetch(url, { headers: { 'client-cert': ':ZXZpbA==:' } })
        return gateway.received.at(-1)?.headers.find(([name]) => name.toLowerCase() === 'client-cert')?.[1]
      }
      setGlobalDispatcher(new Agent({ connect: { ca: readFileSync(server.ca, 'utf8') } }))
      const options = ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr', '-g', settings]
      await startProgram(t, ['/usr/sbin/nginx', ...options], url)

      assert.equal(await certificateSeen({}), undefined)
      const { cert, key } = client
      assert.equal(await certificateSeen({ cert, key }), `:${new X509Certificate(cert).raw.toString('base64')}:`)
    },
  )
