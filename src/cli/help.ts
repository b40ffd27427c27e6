/** What `gatehouse help` prints. */
export const overview = `gatehouse: an authentication gateway in front of applications that know nothing of OpenID Connect

  gatehouse run      --config FILE   serve, in the foreground, until SIGTERM or SIGINT
  gatehouse check    --config FILE   say everything that is wrong with the file, and run its tests
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
  sessions: `gatehouse sessions list --config FILE [--sub SUB] [--sid SID] [--upstream NAME] [--json]
gatehouse sessions show --config FILE KEY
gatehouse sessions end  --config FILE KEY | [--sub SUB] [--sid SID] [--upstream NAME] | --all --yes

Looks at the sessions of running gateways, and ends them, on every replica and at the provider. They have to be in Redis.

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
