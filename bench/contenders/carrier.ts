// A proxy without sign-in that uses a package which Gatehouse does not use: `carrier.ts PACKAGE
// UPSTREAM PORT`.
import { Agent, createServer } from 'node:http'
import fastifyProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import httpProxy from 'http-proxy'

const [, , name, target = '', port] = process.argv
const host = '127.0.0.1'
if (name === 'http-proxy') {
  // By default, the package opens a connection for each request.
  const proxy = httpProxy.createProxyServer({ target, agent: new Agent({ keepAlive: true }) })
  createServer({ keepAliveTimeout: 60_000 }, (req, res) => proxy.web(req, res)).listen(Number(port), host)
} else {
  const app = Fastify({ logger: false, keepAliveTimeout: 60_000 })
  await app.register(fastifyProxy, { upstream: target })
  await app.listen({ host, port: Number(port) })
}
