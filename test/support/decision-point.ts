import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import type { Json } from './signing-provider.ts'

type Answer = (req: IncomingMessage, res: ServerResponse, evaluation: Json) => void

/** A policy decision point (OpenID AuthZEN). It permits everything until a test says otherwise. */
export interface DecisionPoint {
  readonly url: string
  /** The requests that it received. */
  readonly asked: Json[]
  /** Replaces its answers. */
  answer: Answer
}

/** An answer with a decision, as the specification shows it. */
export const decide =
  (content: unknown, headers: Readonly<Record<string, string>> = {}): Answer =>
  (_req, res) =>
    void res.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(content))

export async function startDecisionPoint(t: TestContext): Promise<DecisionPoint> {
  const asked: Json[] = []
  const server = createServer((req, res) => {
    const answer = (evaluation: unknown) => {
      asked.push(evaluation as Json)
      point.answer(req, res, evaluation as Json)
    }
    json(req).then(answer, () => res.writeHead(400).end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/access/v1/evaluation`
  const point: DecisionPoint = { url, asked, answer: decide({ decision: true }) }
  return point
}
