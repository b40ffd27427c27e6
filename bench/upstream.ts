// The application: 1 KiB for everybody, at once.
import { createServer } from 'node:http'
import { serving } from './process.ts'

const body = Buffer.alloc(1024, 'x')
const headers = { 'content-type': 'text/plain', 'content-length': body.length }
serving(createServer({ keepAliveTimeout: 60_000 }, (_, res) => res.writeHead(200, headers).end(body)))
