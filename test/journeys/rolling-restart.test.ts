// Slow: 6 s, replicas restart under load
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { type Command, startCommand } from '../support/command.ts'
import { prepareGateway, prepareReplica, type Surroundings } from '../support/gateway-process.ts'
import { startLoad } from '../support/load.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

/**
 * Passes each connection on to one of `targets` in turn. When a target refuses it, or closes it
 * before the first byte of a response, the next one gets the request: nginx, Caddy, Traefik and
 * HAProxy can do the same for a GET.
 */
async function startBalancer(t: TestContext, targets: Set<string>) {
  const open = new Set<Socket>()
  let turn = 0
  const server = createServer((client) => {
    open.add(client)
    client.on('error', () => {}).on('close', () => open.delete(client))
    let sent: Buffer[] | undefined = []
    let upstream: Socket | undefined
    client.on('data', (part: Buffer) => {
      sent?.push(part)
      upstream?.write(part)
    })
    client.on('close', () => upstream?.destroy())
    turn += 1
    const untried = turn % 2 === 0 ? [...targets] : [...targets].toReversed()
    const tryNext = (): void => {
      const target = untried.pop()
      if (target === undefined) return void client.destroy()
      upstream = connect(Number(new URL(target).port), '127.0.0.1').on('error', () => {})
      for (const part of sent ?? []) upstream.write(part)
      upstream.on('data', (part: Buffer) => {
        sent = undefined
        client.write(part)
      })
      upstream.on('close', () => (sent === undefined || client.destroyed ? client.end() : tryNext()))
    }
    tryNext()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    for (const client of open) client.destroy()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

const isReady = ({ adminUrl }: Surroundings) =>
  fetch(`${adminUrl}/ready`).then(
    ({ ok }) => ok,
    () => false,
  )

for (const [platform, stop] of [
  // Compose sends SIGTERM at once, while the proxy still knows both replicas.
  ['Compose', async (gateway: Command) => void gateway.child.kill('SIGTERM')],
  // Kubernetes runs `preStop` while Services still send connections, and SIGTERM follows.
  [
    'Kubernetes',
    async (gateway: Command, sendsNoMore: () => void, isServing: () => Promise<void>) => {
      await isServing()
      sendsNoMore()
      gateway.child.kill('SIGTERM')
    },
  ],
] as const)
  test(`Two replicas that restart one after the other lose no request (${platform})`, async (t) => {
    const redis = await startRedis(t)
    const first = await prepareGateway(t, {
      store: `{ redis: { url: "${redis.url}" } }`,
      rules: '[{ path: /*, access: public }]',
    })
    const replicas = [first, await prepareReplica(first)]
    const start = async (replica: Surroundings) => {
      const gateway = startCommand(t, ['run', '--config', replica.file], { env: replica.env })
      await until('the replica is ready', () => isReady(replica))
      return gateway
    }
    const running = [await start(replicas[0] as Surroundings), await start(replicas[1] as Surroundings)]
    const targets = new Set(replicas.map(({ url }) => url))
    const address = await startBalancer(t, targets)
    const loads = [true, false].map((keepAlive) => startLoad(t, address, new Agent({ keepAlive })))
    const isServing = async () => {
      const before = loads.map((load) => load.served())
      await until('requests are served', () => loads.every((load, index) => load.served() > (before[index] ?? 0) + 20))
    }

    for (const [index, replica] of replicas.entries()) {
      const gateway = running[index] as Command
      await isServing()
      await stop(gateway, () => targets.delete(replica.url), isServing)
      await gateway.ended
      await isServing()
      await start(replica)
      targets.add(replica.url)
    }
    await isServing()

    for (const load of loads) assert.deepEqual(await load.stop(), ['200'])
  })
