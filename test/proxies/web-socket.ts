import { WebSocket } from 'ws'

/** The status of a handshake, and the first message. */
export interface Handshake {
  readonly status: number
  readonly message: string
}

/** Opens a WebSocket as a page of `origin` does, and closes it after the first message. */
export function connectWebSocket(
  url: string,
  { cookie, origin, ca }: { readonly cookie: string; readonly origin: string; readonly ca?: string },
): Promise<Handshake> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url.replace(/^http/, 'ws'), {
      ...{ origin, headers: cookie === '' ? {} : { cookie } },
      ...(ca !== undefined && { ca }),
    })
    socket.on('unexpected-response', (request, response) => {
      request.destroy()
      resolve({ status: response.statusCode ?? 0, message: '' })
    })
    socket.on('open', () => socket.send('?'))
    socket.on('message', (data: Buffer) => {
      socket.terminate()
      resolve({ status: 101, message: data.toString('utf8') })
    })
    // Some proxies accept the handshake before the gateway refuses it.
    socket.on('close', () => resolve({ status: 0, message: '' }))
    socket.on('error', (error) => reject(error))
  })
}
