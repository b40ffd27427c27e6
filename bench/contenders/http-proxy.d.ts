// The package brings no types; this is what the bench uses of it.
declare module 'http-proxy' {
  import type { Agent, IncomingMessage, ServerResponse } from 'node:http'

  interface Proxy {
    web(req: IncomingMessage, res: ServerResponse): void
  }
  const httpProxy: { createProxyServer(options: { readonly target: string; readonly agent?: Agent }): Proxy }
  export default httpProxy
}
