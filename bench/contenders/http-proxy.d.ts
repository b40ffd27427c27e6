// The package has no types. These are the parts that the bench uses.
declare module 'http-proxy' {
  import type { Agent, IncomingMessage, ServerResponse } from 'node:http'

  interface Proxy {
    web(req: IncomingMessage, res: ServerResponse): void
  }
  const httpProxy: { createProxyServer(options: { readonly target: string; readonly agent?: Agent }): Proxy }
  export default httpProxy
}
