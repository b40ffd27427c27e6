// A proxy without any sign-in, by one of the packages that were not chosen: `contender.ts PACKAGE UPSTREAM [OPTION]`.
import fastifyProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import httpProxy from 'http-proxy'
import { Agent, createServer } from 'node:http'
import { serving } from './process.ts'

const [, , name, target = '', option] = process.argv
if (name === 'http-proxy') {
  // Left alone it opens a connection for each request.
  const agent = option === 'keep-alive' ? { agent: new Agent({ keepAlive: true }) } : {}
  const proxy = httpProxy.createProxyServer({ target, ...agent })
  serving(createServer({ keepAliveTimeout: 60_000 }, (req, res) => proxy.web(req, res)))
} else {
  const app = Fastify({ logger: false, keepAliveTimeout: 60_000 })
  await app.register(fastifyProxy, { upstream: target })
  await app.ready()
  serving(app.server)
}
