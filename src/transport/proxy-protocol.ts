import { isIPv4, isIPv6, type Socket } from 'node:net'

const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
/** Version 2, and the command PROXY or LOCAL. */
const [proxyCommand, localCommand] = [0x21, 0x20]
/** TCP over IPv4 or IPv6. */
const [overIPv4, overIPv6] = [0x11, 0x21]

/**
 * The header of a connection in the PROXY protocol, version 2 (§2.2 of its specification). The port
 * of the client is 0, because the gateway knows it only of clients that connect to it directly.
 * @param client the address of the client. When it is not an IP address, the connection counts as
 * one of the gateway itself
 */
export function proxyHeader(client: string | undefined, { remoteAddress, remotePort = 0 }: Socket): Buffer {
  const source = client ?? ''
  const target = remoteAddress ?? '0.0.0.0'
  const head = Buffer.alloc(16)
  signature.copy(head)
  if (!isIPv4(source) && !isIPv6(source)) {
    head[12] = localCommand
    return head
  }
  const isShort = isIPv4(source) && isIPv4(target)
  const addresses = [source, target].map((address) => bytesOf(address, isShort))
  const ports = Buffer.alloc(4)
  ports.writeUInt16BE(remotePort, 2)
  const content = Buffer.concat([...addresses, ports])
  head[12] = proxyCommand
  head[13] = isShort ? overIPv4 : overIPv6
  head.writeUInt16BE(content.length, 14)
  return Buffer.concat([head, content])
}

/**
 * The 4 or 16 bytes of an IP address. An IPv4 address in 16 bytes is mapped (RFC 4291 §2.5.5.2).
 */
function bytesOf(address: string, isShort: boolean): Buffer {
  if (isIPv4(address)) {
    const bytes = Buffer.from(address.split('.').map(Number))
    return isShort ? bytes : Buffer.concat([Buffer.alloc(10), Buffer.from([0xff, 0xff]), bytes])
  }
  const [left = '', right] = address.replace(/%.*$/, '').split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':').flatMap(groupOf))
  const [first, last] = [groups(left), groups(right ?? '')]
  const missing = Array.from({ length: 8 - first.length - last.length }, () => 0)
  const bytes = Buffer.alloc(16)
  for (const [index, group] of [...first, ...missing, ...last].entries()) bytes.writeUInt16BE(group, index * 2)
  return bytes
}

/** The last group may be an IPv4 address, which is two groups. */
function groupOf(text: string): readonly number[] {
  if (!text.includes('.')) return [Number.parseInt(text, 16)]
  const [a = 0, b = 0, c = 0, d = 0] = text.split('.').map(Number)
  return [a * 256 + b, c * 256 + d]
}
