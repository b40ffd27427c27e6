// The application of bench/revocation.ts: a WebSocket and an event stream that never end, and 1 KiB
// for everything else.
import { createServer } from 'node:http'
import { WebSocketServer } from 'ws'
import { serving } from './process.ts'

const body = Buffer.alloc(1024, 'x')
const server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => {
  if (req.url === '/events') res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n')
  else res.writeHead(200, { 'content-length': body.length }).end(body)
})
new WebSocketServer({ server, path: '/ws' }).on('connection', (socket) => socket.send('first'))
serving(server)
