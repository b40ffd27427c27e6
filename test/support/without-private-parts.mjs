// Node.js loads this module before a gateway. It takes away private parts of Node.js
// that the gateway uses, as another version may do. WITHOUT names the parts. Each part that the
// gateway misses is written once to standard error.
import cluster from 'node:cluster'
import { writeSync } from 'node:fs'
import http from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import { Socket } from 'node:net'

const reported = new Set()

function report(part) {
  if (reported.has(part)) return
  reported.add(part)
  writeSync(2, `without ${part}\n`)
}

/** Ignores what is assigned to a property. */
function freeze(object, name, value) {
  const set = () => {
    report(name)
  }
  Object.defineProperty(object, name, { get: () => value, set })
}

const parts = {
  httpAllowHalfOpen: () => freeze(http.Server.prototype, 'httpAllowHalfOpen', false),

  destroySoon: () => freeze(Socket.prototype, 'destroySoon', Socket.prototype.destroySoon),

  /** Each request has a property of its own, so an accessor in a class is not used. */
  upgrade: () => {
    http.IncomingMessage = class extends http.IncomingMessage {
      constructor(socket) {
        super(socket)
        if (Object.hasOwn(this, 'upgrade')) return
        report('upgrade')
        Object.defineProperty(this, 'upgrade', { value: null, writable: true })
      }
    }
  },

  /** `node:cluster` does not send its messages through the method that the gateway replaces. */
  newconn: () => {
    const { fork } = cluster
    cluster.fork = (env) => {
      const worker = fork.call(cluster, env)
      freeze(worker.process, 'send', worker.process.send)
      return worker
    }
  },

  /** Sockets do not have the properties that `onread` of `net.connect` sets. */
  kBuffer: () => {
    const { getOwnPropertySymbols } = Object
    Object.getOwnPropertySymbols = (object) => {
      const symbols = getOwnPropertySymbols(object)
      if (!(object instanceof Socket)) return symbols
      report('kBuffer')
      return symbols.filter(({ description }) => !description?.startsWith('kBuffer'))
    }
  },

  /** Requests to write do not say whether a write has used them. */
  getAsyncId: () => {
    const { WriteWrap } = process.binding('stream_wrap')
    Object.defineProperty(WriteWrap.prototype, 'getAsyncId', { get: () => report('getAsyncId') })
  },

  assignSocket: () => {
    http.ServerResponse = class extends http.ServerResponse {
      get assignSocket() {
        return void report('assignSocket')
      }
    }
  },
}

for (const part of (process.env['WITHOUT'] ?? '').split(',')) parts[part]()
syncBuiltinESMExports()
