import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { PageStreams } from '../../src/admin/page-streams.ts'
import type { Overview } from '../../src/admin/view.ts'
import type { GatewayConfig } from '../../src/config/model/gateway.ts'
import { writeResponse } from '../../src/http/response.ts'
import { replacePauses } from '../support/pauses.ts'
import { until } from '../support/until.ts'

const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, announce: () => {} }

/** A page of a megabyte that changes each time. */
function largePage(number: number): Overview {
  const at = Date.now()
  return {
    ...{ at, version: '1', host: 'h', isShared: false, query: { sub: '', sid: '', text: '', sort: 'began', page: 1 } },
    processes: { responding: 1, silent: [], countingSince: at },
    sessions: { fault: `${number}${'x'.repeat(1_000_000)}` },
    ...{ providers: [], upstreams: [], timeline: [], samples: [], sessionCounts: [], inner: [] },
  }
}

test('A stream whose client does not read holds one update, however many there are', async (t) => {
  replacePauses(t, { updateAdminPageMs: 1 })
  const config = {} as GatewayConfig
  let updates = 0
  const overview = async () => largePage((updates += 1))
  const streams = new PageStreams({ running: () => config, overview, log })
  let unread: ServerResponse | undefined
  const server = createServer((req, res) => {
    unread ??= res
    writeResponse({ req, res }, streams.open({ sub: '', sid: '', text: '', sort: 'began', page: 1 }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
  const [silent, reading] = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')]
  t.after(() => [silent, reading].forEach((socket) => socket.destroy()))
  silent.pause()
  silent.write(request)
  await until('the first stream is open', () => unread !== undefined)
  reading.write(request)
  reading.resume()

  const begun = updates
  await until('many updates', () => updates > begun + 40)

  assert.ok(unread !== undefined)
  assert.equal(unread.writableNeedDrain, true)
  assert.ok(unread.writableLength < 2_000_000, `${unread.writableLength} bytes`)
})
