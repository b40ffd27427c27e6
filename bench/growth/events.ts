// An application with event streams over HTTP/2, without TLS. Each has one event, and stays open.
import { createServer } from 'node:http2'
import { serving } from '../process.ts'

const server = createServer((_req, res) => {
  res.stream.on('error', () => {})
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  res.write('data: open\n\n')
})
server.on('sessionError', () => {})
serving(server)
