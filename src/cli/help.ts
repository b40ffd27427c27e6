/** What `gatehouse help` prints. */
export const overview = `gatehouse: an authentication gateway in front of applications that know nothing of OpenID Connect

  gatehouse init                     write a first configuration, out of five answers
  gatehouse import oauth2-proxy FILE write a configuration in place of that of another gateway, and say what is otherwise
  gatehouse run      --config FILE   serve, in the foreground, until SIGTERM or SIGINT
  gatehouse check    --config FILE   say everything that is wrong with the file, and run its tests
  gatehouse doctor   --config FILE   look at the provider, Redis, the applications and the way there, and say what to do
  gatehouse explain  METHOD URL      say, step by step, what becomes of a request; or what the log knows of one
  gatehouse sessions list|show|end   look at the sessions of running gateways, and end them, when they are in Redis
  gatehouse health   --config FILE   exit 0 when the gateway of this file answers on this machine
  gatehouse schema                   print the JSON Schema of the file, for editors
  gatehouse demo     --config FILE   serve, with a toy provider and a toy application beside it
  gatehouse help [COMMAND]           say more about a command
  gatehouse version

FILE defaults to gateway.yaml.

Exit codes: 0 all is well; 1 something is wrong with what was given, or was found; 2 the call itself is wrong.
`

/** What is said of each command by \`gatehouse help COMMAND\`. */
export const help: Readonly<Record<string, string>> = {
  init: `gatehouse init [--issuer URL] [--client-id ID] [--url URL] [--upstream URL] [--store memory|REDIS_URL] [-o FILE] [--force]

Writes a first configuration with every setting explained, and beside it gateway.schema.json for editors, unless it is there. What is
not given is asked for; where nobody can be asked, all but --store has to be given. Says what has to be registered at the provider.

  --issuer      the OpenID Provider, exactly as its tokens spell it, such as https://id.example.com
  --client-id   what this gateway is called there
  --url         where browsers will reach it, such as https://orders.example.com
  --upstream    where the application listens, such as http://127.0.0.1:3000
  --store       where sessions are kept: memory (the default), or a Redis, such as redis://redis:6379
  --out, -o     the file to write; gateway.yaml unless it is named
  --force       overwrite what is there

Exit codes: 0 it is written; 1 the file is there already, cannot be written or is not good yet, or the questions were not answered;
2 the call is wrong.
`,
  import: `gatehouse import oauth2-proxy FILE [--url URL] [-o FILE] [--force]

Translates the configuration file of oauth2-proxy (TOML; - is standard input) and prints the result. Says on standard error what has to be
decided first, what is not translated and why, and what is otherwise than before. No secret is in either: the file names environment
variables. What kept people out and no rule can say keeps everybody out until it is decided.

  --url       where browsers reach the gateway, such as https://orders.example.com, unless redirect_url says it
  --out, -o   the file to write, instead of standard output
  --force     overwrite what is there

Exit codes: 0 it is translated, decisions left or not; 1 the file cannot be read, or the other one not be written; 2 the call is wrong.
`,
  run: `gatehouse run [--config FILE]

Serves in the foreground until SIGTERM or SIGINT. What is wrong with the file is said as by "check", its tests are run, and
nothing is served unless both are good.

Exit codes: 0 stopped as it was asked to; 1 the file, a test in it, a port or a certificate is not good; 2 the call is wrong.
`,
  check: `gatehouse check [--config FILE] [--format text|json|github]

Says everything that is wrong with the file, all at once, and what is possible but unwise; runs the tests that stand in it; prints
what has to be registered at the provider. Starts nothing, and asks nobody.

  --format text     for people (the default): diagnostics on standard error, the result on standard output
  --format json     one JSON document on standard output
  --format github   workflow commands of GitHub Actions, which show each diagnostic beside its line

Exit codes: 0 the file is good, warnings or not; 1 it has errors, or one of its tests fails; 2 the call is wrong.
`,
  doctor: `gatehouse doctor [--config FILE] [--as CLAIMS.json] [--format text|json]

Looks at the real surroundings, from where it runs: the provider (discovery, keys, clocks, logout, whether it knows this client and
its redirect URIs), Redis (version, mode, eviction, latency, rights), each application (does it answer, can it be reached around the
gateway, the bytes of its identity headers), the external URL, the cookie and the files with secrets. Says of each what it found, why it
matters and what to do; prints what has to be registered at the provider. Run it where the gateway runs.

It makes an authorization request with prompt=none for each redirect URI, a token request with a made-up code, and tries commands of
Redis on places of its own. No secret is printed.

  --as FILE         a JSON file with somebody's claims, to measure the identity headers with
  --format json     the same for programs

Exit codes: 0 no fault, warnings or not; 1 at least one fault, or the file is not good; 2 the call is wrong.
`,
  explain: `gatehouse explain [--config FILE] [--as CLAIMS.json | --anonymous] [-H 'Name: value' ...] [--peer ADDRESS] [METHOD] URL
gatehouse explain --log FILE|- REQUEST_ID

Takes the decision that the gateway would take, with the code that serves requests, and says each step: host, path, upstream, rule
and its line in the file, session, claims, headers that are removed and set. Starts nothing, and asks nobody.

  --as FILE         who is signed in: a JSON file with their claims; - is standard input. Without it: nobody
  --header, -H      a header of the request; without any, it is a page that a browser loads
  --peer ADDRESS    where the connection comes from, for what trusted_proxies are believed
  --format json     the same for programs

With --log, finds what the log says of a request, by the id that stands on the page of its refusal, and says what to do.

Exit codes: 0 it is explained, whatever the decision is; 1 the file is not good, or the log knows nothing of the request;
2 the call is wrong.
`,
  sessions: `gatehouse sessions list [--config FILE] [--sub SUB] [--sid SID] [--upstream NAME] [--format text|json]
gatehouse sessions show [--config FILE] [--format text|json] KEY
gatehouse sessions end  [--config FILE] [--format text|json] KEY | [--sub SUB] [--sid SID] [--upstream NAME] | --all --yes

Looks at the sessions of running gateways, and ends them, on every replica and at the provider. They have to be in Redis.
The result is on standard output; what "end" did, session by session, for the audit log, on standard error.

  --sub             the person, as the provider names them
  --sid             the session of the provider
  --upstream        sessions that began at the address of this upstream; what is named together narrows
  --all --yes       everybody; one alone is not enough
  --format json     the same for programs; a list is one object a line

Exit codes: 0 done; 1 there is no such session, Redis is away, or the file is not good; 2 the call is wrong.
`,
  health: `gatehouse health [--config FILE]

Asks admin.listen for /live; without it, whether the gateway answers at all. For a container's health check.

Exit codes: 0 it answers; 1 it does not, or the file is not good; 2 the call is wrong.
`,
  schema: `gatehouse schema

Prints the JSON Schema (draft-07) of the configuration. Editors with the YAML language server complete and check a file whose first
line names it:

  gatehouse schema > gateway.schema.json
  # yaml-language-server: $schema=gateway.schema.json

Exit codes: 0 printed; 2 the call is wrong.
`,
  demo: `gatehouse demo [--config FILE]

Serves as "run" does, with a toy provider and a toy application at the addresses that the file names. Loopback only.

Exit codes: 0 stopped as it was asked to; 1 the file or a port is not good, or this installation has no demo; 2 the call is wrong.
`,
}
