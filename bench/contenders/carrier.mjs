// A proxy without sign-in that uses a package which Gatehouse does not use: `carrier.mjs PACKAGE
// UPSTREAM PORT`. JavaScript, so that it starts without a loader.
import { Agent, createServer } from 'node:http'

const [, , name, target = '', port] = process.argv
const host = '127.0.0.1'
if (name === 'http-proxy') {
  const { default: httpProxy } = await import('http-proxy')
  // By default, the package opens a connection for each request.
  const proxy = httpProxy.createProxyServer({ target, agent: new Agent({ keepAlive: true }) })
  createServer({ keepAliveTimeout: 60_000 }, (req, res) => proxy.web(req, res)).listen(Number(port), host)
} else {
  const [{ default: Fastify }, { default: fastifyProxy }] = await Promise.all([
    import('fastify'),
    import('@fastify/http-proxy'),
  ])
  const app = Fastify({ logger: false, keepAliveTimeout: 60_000 })
  await app.register(fastifyProxy, { upstream: target })
  await app.listen({ host, port: Number(port) })
}
