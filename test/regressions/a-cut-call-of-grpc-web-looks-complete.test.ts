import assert from 'node:assert/strict'
import { connect } from 'node:http2'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { fetchWhole } from '../proxy/support.ts'
import { flags, frame, types } from '../support/http2-frames.ts'
import { startWorld, type World } from '../support/world.ts'
import { block, frameServer, resetStream } from '../transport/http2/frames.ts'

/** Sends a call. Resolves when its response has ended, to whether it is complete for the client. */
type Call = (url: string, headers: Record<string, string>) => Promise<boolean>

const overHttp1: Call = (url, headers) =>
  fetchWhole(`${url}/orders.Orders/List`, { method: 'POST', headers, body: 'call' }).then(
    () => true,
    () => false,
  )

const overHttp2: Call = async (url, headers) => {
  const session = connect(url)
  const stream = session.request({ ':method': 'POST', ':path': '/orders.Orders/List', ...headers })
  stream
    .on('error', () => {})
    .resume()
    .end('call')
  await new Promise((resolve) => stream.once('close', resolve))
  session.destroy()
  return stream.rstCode === 0
}

interface Upstream {
  readonly socket: Socket
  readonly stream: number
}

const logOut = async (_upstream: Upstream, { provider, postLogoutToken }: World) => {
  const logout_token = await provider.logoutToken({ sid: provider.sessions().at(-1)?.sid ?? '', sub: 'jane' })
  assert.equal((await postLogoutToken({ logout_token })).status, 200)
}

for (const [when, cut] of [
  ['the application resets the stream', ({ socket, stream }) => socket.write(resetStream(stream, 2))],
  ['the application resets the stream with NO_ERROR', ({ socket, stream }) => socket.write(resetStream(stream, 0))],
  ['the application closes its connection', ({ socket }) => socket.end()],
  ['the session ends', logOut],
] as const satisfies readonly (readonly [string, (upstream: Upstream, world: World) => unknown])[])
  for (const type of ['application/grpc-web+proto', 'application/grpc-web-text'])
    for (const [version, call] of [
      ['HTTP/1.1', overHttp1],
      ['HTTP/2', overHttp2],
    ] as const)
      test(`A call of ${type} over ${version} is incomplete when ${when}`, async (t) => {
        const { promise: begun, resolve: begin } = Promise.withResolvers<Upstream>()
        const { port } = await frameServer(t, (socket, stream) => {
          const head = [
            [':status', '200'],
            ['content-type', type],
          ] as const
          socket.write(frame(types.headers, flags.endHeaders, stream, block(head)))
          socket.write(frame(types.data, 0, stream, type.endsWith('text') ? 'AAAAAAVwYXJ0IDE=' : '\0\0\0\0\x06part 1'))
          begin({ socket, stream })
        })
        const world = await startWorld(t, {
          listen: (address) => `{ address: "${address}", h2c: true }`,
          upstream: new URL(`http://127.0.0.1:${port}`),
          upstreamSettings: 'protocol: h2c\n    rules: [{ path: /page, respond: { text: page } }]',
        })
        const jane = world.browser()
        await jane.get(`${world.url}/page`)
        const called = call(world.url, { 'content-type': type, cookie: jane.cookieHeader })

        await cut(await begun, world)

        assert.equal(await called, false)
      })
