import { type Agent, get } from 'node:http'
import type { TestContext } from 'node:test'

export interface Load {
  /** The number of responses with 200. */
  served(): number
  /** Resolves to the status codes of all responses, and the codes of errors, once each. */
  stop(): Promise<readonly string[]>
}

/** Sends GET requests from two clients, each after the last one's response, until `stop`. */
export function startLoad(t: TestContext, url: string, agent: Agent): Load {
  const outcomes = new Map<string, number>()
  let isOver = false
  t.after(() => (isOver = true))
  const request = () =>
    new Promise<string>((resolve) => {
      const sent = get(url, { agent }, (response) => {
        response.resume().on('end', () => resolve(String(response.statusCode)))
        response.on('error', (error) => resolve(error.message))
      })
      sent.on('error', (error: NodeJS.ErrnoException) => {
        // A GET on a connection that the server closes meanwhile is repeated (RFC 9110 §9.2.2).
        if (sent.reusedSocket && error.code === 'ECONNRESET') resolve(request())
        else resolve(String(error.code))
      })
    })
  const run = async () => {
    while (!isOver) {
      const outcome = await request()
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    }
  }
  const done = Promise.all([run(), run()])
  return {
    served: () => outcomes.get('200') ?? 0,
    stop: async () => {
      isOver = true
      await done
      agent.destroy()
      return [...outcomes.keys()]
    },
  }
}
