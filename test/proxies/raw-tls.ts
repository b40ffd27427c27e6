import { connect } from 'node:tls'

/** Sends bytes over TLS. @returns the status of the response */
export function exchangeTls(port: number, ca: string, bytes: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect({ port, host: '127.0.0.1', ca }, () => socket.write(bytes))
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk
      const status = /^HTTP\/1\.1 (\d{3}) .*\r\n/.exec(text)?.[1]
      if (status === undefined) return
      socket.destroy()
      resolve(Number(status))
    })
    socket.on('error', reject)
  })
}
