// Slow: 3 s, targets restart under load
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'

/**
 * An application that responds with its port. With SIGTERM its health check fails, and it stops
 * when no request has come for a while, as applications do that are restarted one after another.
 */
const program = `
const { createServer } = require('node:http')
let last = Date.now()
let isStopping = false
const server = createServer((req, res) => {
  if (req.url === '/health') return res.writeHead(isStopping ? 503 : 200).end()
  last = Date.now()
  req.resume().on('end', () => setTimeout(() => res.end(String(process.argv[1])), 2))
}).listen(Number(process.argv[1]), '127.0.0.1', () => console.log('ready'))
process.on('SIGTERM', () => {
  isStopping = true
  setInterval(() => Date.now() - last > 200 && process.exit(0), 20)
})
`

class Application {
  readonly port: number
  #process: ChildProcess | undefined

  constructor(port: number) {
    this.port = port
  }

  async start(t: TestContext): Promise<void> {
    const child = spawn(process.execPath, ['-e', program, String(this.port)], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.after(() => child.kill('SIGKILL'))
    this.#process = child
    await once(child.stdout, 'data')
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#process
    if (child === undefined) return
    const stopped = once(child, 'exit')
    child.kill(signal)
    await stopped
  }
}

async function startTargets(t: TestContext, settings: string) {
  const applications = [await freePort(), await freePort(), await freePort()].map((port) => new Application(port))
  await Promise.all(applications.map((each) => each.start(t)))
  const targets = applications.map(({ port }) => `http://127.0.0.1:${port}`)
  const world = await startWorld(t, {
    targets: `[${targets.join(', ')}]`,
    headers: 'X-Remote-User: sub',
    upstreamSettings: settings,
  })
  return { world, applications }
}

/** Sends requests of a signed-in person, one after another, until it is stopped. */
async function load(world: World, method: 'GET' | 'POST') {
  const jane = world.browser()
  await jane.get(`${world.url}/first`)
  const statuses: number[] = []
  let isStopped = false
  const init = { method, headers: { cookie: jane.cookieHeader, origin: world.url } }
  const one = async () => {
    while (!isStopped) {
      const response = await fetch(`${world.url}/x`, { ...init, ...(method === 'POST' && { body: 'an order' }) })
      await response.text()
      statuses.push(response.status)
    }
  }
  const running = Promise.all([one(), one(), one(), one()])
  return {
    statuses,
    stop: () => {
      isStopped = true
      return running
    },
  }
}

const healthyIn = (world: World) =>
  world.replicas[0]?.log.filter(({ message }) => message === 'upstream.target_healthy').length ?? 0

test('An application of three targets is restarted under load without one error', async (t) => {
  const { world, applications } = await startTargets(
    t,
    'health_check: { path: /health, every: 100ms, unhealthy_after: 1 }',
  )
  const loads = [await load(world, 'GET'), await load(world, 'POST')]

  for (const application of applications) {
    const before = healthyIn(world)
    await application.stop('SIGTERM')
    await application.start(t)
    await until('the target is healthy again', () => healthyIn(world) > before)
  }
  await Promise.all(loads.map(({ stop }) => stop()))

  for (const { statuses } of loads) {
    assert.ok(statuses.length > 50, String(statuses.length))
    assert.deepEqual([...new Set(statuses)], [200])
  }
})

test('When a target is killed under load, no request is lost that may be repeated', async (t) => {
  const { world, applications } = await startTargets(t, 'eject: { for: 1h, at_most: 1h }')
  const [gets, posts] = [await load(world, 'GET'), await load(world, 'POST')]
  await until('each target has had requests', () => posts.statuses.length > 20)

  await applications[1]?.stop('SIGKILL')
  const { length } = gets.statuses
  await until('many requests came after that', () => gets.statuses.length > length + 100)
  await Promise.all([gets.stop(), posts.stop()])

  assert.deepEqual([...new Set(gets.statuses)], [200])
  // A POST that was sent may have been carried out: 502, for at most as many as were under way.
  const lost = posts.statuses.filter((status) => status !== 200)
  assert.ok(lost.length <= 4 && lost.every((status) => status === 502), lost.join())
  const killed = `http://127.0.0.1:${applications[1]?.port}`
  const [replica] = world.replicas
  const ejected = replica?.log.filter(({ message }) => message === 'upstream.target_ejected') ?? []
  assert.deepEqual(
    ejected.map(({ fields }) => fields['target']),
    [killed],
  )
  const after = replica?.access.slice(-50).map(({ target }) => target)
  assert.ok(after?.every((target) => target !== undefined && target !== killed))
})
