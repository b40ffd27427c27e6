// A proxy without any sign-in, by one of the packages that were not chosen: `contender.ts NAME UPSTREAM`.
import fastifyProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import httpProxy from 'http-proxy'
import { Agent, createServer } from 'node:http'
import { serving } from './process.ts'

const [, , name, target = ''] = process.argv
if (name === 'http-proxy') {
  const proxy = httpProxy.createProxyServer({ target, agent: new Agent({ keepAlive: true }) })
  serving(createServer({ keepAliveTimeout: 60_000 }, (req, res) => proxy.web(req, res)))
} else {
  const app = Fastify({ logger: false, keepAliveTimeout: 60_000 })
  await app.register(fastifyProxy, { upstream: target })
  await app.ready()
  serving(app.server)
}
