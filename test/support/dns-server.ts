import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { Scope } from './redis.ts'

const types = { A: 1, CNAME: 5, AAAA: 28, SRV: 33 } as const

/** The records of a name: addresses, an alias, or services. */
export interface DnsRecords {
  readonly a?: readonly string[]
  /** In eight groups of four digits. */
  readonly aaaa?: readonly string[]
  readonly cname?: string
  readonly srv?: readonly {
    readonly priority: number
    readonly weight: number
    readonly port: number
    readonly host: string
  }[]
}

export interface DnsServer {
  /** Its address and port. */
  readonly address: string
  /** The records by name, which a test may change. */
  readonly names: Map<string, DnsRecords>
  /** Whether it responds at all. */
  isSilent: boolean
  /** How many questions it got. */
  questions: number
}

/** Starts a DNS server. A name without records does not exist (NXDOMAIN). */
export async function startDnsServer(scope: Scope, names: Readonly<Record<string, DnsRecords>>): Promise<DnsServer> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  scope.after(() => socket.close())
  const server = {
    ...{ address: `127.0.0.1:${socket.address().port}`, names: new Map(Object.entries(names)) },
    ...{ isSilent: false, questions: 0 },
  }
  socket.on('message', (query, { port, address }) => {
    server.questions += 1
    if (!server.isSilent) socket.send(responseTo(query, server.names), port, address)
  })
  return server
}

/** RFC 1035 §4.1. */
function responseTo(query: Buffer, names: ReadonlyMap<string, DnsRecords>): Buffer {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const type = query.readUInt16BE(at + 1)
  const question = query.subarray(12, at + 5)
  const records = names.get(labels.join('.').toLowerCase())
  const answers = records === undefined ? [] : answersOf(records, type)
  const head = Buffer.alloc(12)
  query.copy(head, 0, 0, 2)
  head.writeUInt16BE(records === undefined ? 0x8183 : 0x8180, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(answers.length, 6)
  return Buffer.concat([head, question, ...answers])
}

function answersOf({ a = [], aaaa = [], cname, srv = [] }: DnsRecords, type: number): readonly Buffer[] {
  if (cname !== undefined) return [answer(types.CNAME, nameBytes(cname))]
  if (type === types.A) return a.map((address) => answer(type, Buffer.from(address.split('.').map(Number))))
  if (type === types.AAAA) return aaaa.map((address) => answer(type, Buffer.from(address.replaceAll(':', ''), 'hex')))
  if (type !== types.SRV) return []
  return srv.map(({ priority, weight, port, host }) => {
    const numbers = Buffer.alloc(6)
    for (const [index, number] of [priority, weight, port].entries()) numbers.writeUInt16BE(number, index * 2)
    return answer(type, Buffer.concat([numbers, nameBytes(host)]))
  })
}

/** A record of the name in the question, with a lifetime of 0. */
function answer(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}

function nameBytes(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]))
  return Buffer.concat([...labels, Buffer.from([0])])
}
