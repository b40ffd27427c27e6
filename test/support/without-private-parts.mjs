// Node.js loads this module before a gateway. It takes away private parts of Node.js
// that the gateway uses, as another version may do. WITHOUT names the parts. Each part that the
// gateway misses is written once to standard error.
import cluster from 'node:cluster'
import { writeSync } from 'node:fs'
import http from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import { Server, Socket } from 'node:net'

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

  /** The handle of a socket rejects what `onread` of `net.connect` passes to it. */
  throws: () =>
    changeReads(() => {
      throw new TypeError('Illegal invocation')
    }),

  /** Node.js says that it has a version that does not exist yet. */
  version: () => {
    report('version')
    Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '99.0.0' } })
  },

  /** Port 0 cannot be bound, as in a container without the loopback interface. */
  loopback: () => {
    const { listen } = Server.prototype
    Server.prototype.listen = function (...args) {
      const { port, host } = args[0]
      if (port !== 0 || host !== '127.0.0.1') return listen.apply(this, args)
      report('loopback')
      const message = `listen EADDRNOTAVAIL: address not available ${host}`
      const error = Object.assign(new Error(message), { code: 'EADDRNOTAVAIL', syscall: 'listen' })
      process.nextTick(() => this.emit('error', error))
      return this
    }
  },

  /** Reads call back with something else than the number of bytes. */
  null: () => changeReads((read) => () => read(null)),
  text: () => changeReads((read) => (length) => read(`${length}`)),

  /** A server serves its connections in a function that expects something else. */
  listener: () => {
    const { listeners } = http.Server.prototype
    http.Server.prototype.listeners = function (event) {
      const all = listeners.call(this, event)
      if (event !== 'connection') return all
      report('listener')
      return all.map(() => () => {
        throw new TypeError('Illegal invocation')
      })
    }
  },
}

/** Changes what is called after each read into the memory of a user. */
function changeReads(change) {
  const { TCP } = process.binding('tcp_wrap')
  const { useUserBuffer } = TCP.prototype
  const symbolOf = (object, name) =>
    Object.getOwnPropertySymbols(object).find(({ description }) => description === name)
  TCP.prototype.useUserBuffer = function (memory) {
    const socket = this[symbolOf(this, 'owner_symbol')]
    // A connection that was accepted; clients of `net.connect` may use the public option.
    if (socket.server != null) {
      report('reads')
      const callback = symbolOf(socket, 'kBufferCb')
      socket[callback] = change(socket[callback])
    }
    return useUserBuffer.call(this, memory)
  }
}

for (const part of (process.env['WITHOUT'] ?? '').split(',')) parts[part]()
syncBuiltinESMExports()
