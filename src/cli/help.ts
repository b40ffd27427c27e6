/** The text of `gatehouse help`. */
export const overview = `gatehouse: an authentication gateway for applications without OpenID Connect

  gatehouse init                     write a first configuration from five answers
  gatehouse import   PROGRAM FILE    translate a configuration of another program and list the differences
  gatehouse run      --config FILE   run the gateway in the foreground until SIGTERM or SIGINT
  gatehouse check    --config FILE   print all errors of the file and run its tests
  gatehouse register --config FILE   register the gateway as a client of its provider, and update the registration
  gatehouse doctor   --config FILE   examine the provider, Redis, the applications and the external URL
  gatehouse explain  METHOD URL      show step by step how the gateway decides a request, or what the log says about one
  gatehouse sessions list|show|end   list, show and end sessions of running gateways (with Redis)
  gatehouse service-account NAME     print the line of a service account for the file of service_accounts
  gatehouse health   --config FILE   exit with 0 when the gateway of this file is healthy on this machine
  gatehouse schema                   print the JSON Schema of the configuration, for editors
  gatehouse demo     --config FILE   run the gateway with a demo provider and a demo application
  gatehouse completion SHELL         print the completion of commands and options for bash, zsh or fish, or the manual page
  gatehouse help [COMMAND]           describe a command
  gatehouse version

FILE defaults to gateway.yaml.

Exit codes: 0 success; 1 the input or a result has an error; 2 the call is invalid.
`

/** The text of `gatehouse help COMMAND` for each command. */
export const help: Readonly<Record<string, string>> = {
  init: `gatehouse init [--issuer URL] [--client-id ID] [--url URL] [--upstream URL] [--store memory|file:PATH|REDIS_URL] [-o FILE] [--force]

Writes a first configuration that explains every setting, and prints what to register at the provider. Beside it writes
gateway.schema.json for editors, unless that file exists. On a terminal, asks for values that no option gives. Without a terminal, all
options but --store are required.

  --issuer      the issuer of the OpenID Provider, exactly as the provider spells it, such as https://id.example.com
  --client-id   the client ID of this gateway at the provider
  --url         the URL at which browsers reach the gateway, such as https://orders.example.com
  --upstream    the URL of the application, such as http://127.0.0.1:3000
  --store       where the gateway stores sessions: memory (the default), a file for one replica, such as
                file:/var/lib/gatehouse/sessions.db, or a Redis for several replicas, such as redis://redis:6379
  --out, -o     the file to write; default: gateway.yaml
  --force       overwrite existing files

Exit codes: 0 the file was written and is valid; 1 the file exists already, cannot be written or is still invalid, or the input ended
before all questions were answered; 2 the call is invalid.
`,
  import: `gatehouse import PROGRAM FILE... [--service NAME] [--url URL] [-o FILE] [--force] [-- FLAGS]

Translates the configuration of another program and prints the result. Each FILE (- is standard input) is a part of it:

  oauth2-proxy          its file (TOML), a file of OAUTH2_PROXY_ variables, a Compose file, a manifest of Kubernetes, values of the Helm
                        chart, or a command line. FLAGS are those of oauth2-proxy
  mod_auth_openidc      files of Apache with virtual hosts, and the files that they include. FLAGS: -D NAME
  pomerium              config.yaml
  traefik-forward-auth  its file (INI), a file of variables, a Compose file, a manifest of Kubernetes, or a command line
  vouch                 config.yml, a file of VOUCH_ and OAUTH_ variables, or a Compose file

All of them together are one configuration, as in that program. Notes on standard error list open decisions, settings that are not
translated, and differences. Neither output contains a secret: the file names environment variables. When rules cannot express a
restriction, the new configuration denies all people until you decide. Its tests have what the other program decides.

  --url       the URL at which browsers reach the gateway, such as https://orders.example.com; default: the one in the files
  --service   the service or container that runs the program; default: the one with its image
  --out, -o   the file to write; default: standard output
  --force     overwrite an existing file

Exit codes: 0 the file was translated, with or without open decisions; 1 a file cannot be read or written; 2 the call is invalid.
`,
  run: `gatehouse run [--config FILE]

Runs the gateway in the foreground until SIGTERM or SIGINT. First prints the errors of the file, as "check" does, and runs its tests.
The gateway does not start if the file is invalid or a test fails.

Exit codes: 0 stopped by a signal; 1 the file is invalid, a test in it fails, or a port or certificate cannot be used;
2 the call is invalid.
`,
  check: `gatehouse check [--config FILE] [--for VERSION] [--registration [--state FILE]] [--format text|json|github]

Prints all errors of the file at once, and warnings about settings that work but may be unwanted. Then runs the tests in the file and
prints what to register at the provider. Does not start the gateway, and sends no requests without --registration.

  --for VERSION     whether an older version accepts the file: names the settings that it does not have yet
  --registration    compare what the provider has registered with what is needed, where gatehouse register has registered it
  --state FILE      the file of gatehouse register; default: gatehouse-registration.json beside the configuration
  --format text     for people (the default): diagnostics on standard error, the result on standard output
  --format json     one JSON document on standard output
  --format github   workflow commands of GitHub Actions, which show each diagnostic beside its line

Exit codes: 0 the file is valid, with or without warnings; 1 it has errors, one of its tests fails, or the registration differs;
2 the call is invalid.
`,
  register: `gatehouse register [--config FILE] [--provider NAME] [--token FILE] [--state FILE] [--update] [--write] [--dry-run] [--format json]

Registers the gateway as a client of its provider (dynamic client registration, RFC 7591): all redirect URIs, logout URIs, algorithms
and scopes that the configuration needs. Its client_id may be any word until then, and its client_secret need not exist. The secret goes
to the file that client_secret names, or is printed. Afterwards prints what the provider has registered differently.

  --provider   the name of one of several providers
  --token      a file with the initial access token of the provider; - is standard input
  --state      the file that says where the client is registered, with a token to change it; default: gatehouse-registration.json
               beside the configuration
  --update     change the registration after a change of the configuration (RFC 7592)
  --write      write the new client_id into the configuration
  --dry-run    print what would be registered, or what differs with --update; change nothing
  --format     text (default) or json

Exit codes: 0 the client is registered as printed; 1 the provider refuses, the file is invalid, or a file cannot be read or written;
2 the call is invalid.
`,
  doctor: `gatehouse doctor [--config FILE] [--as CLAIMS.json] [--format text|json]

Examines the environment of the gateway: the provider (discovery, keys, clocks, logout, this client and its redirect URIs), Redis
(version, mode, eviction, latency, permissions), each application (reachable through and around the gateway, size of its identity
headers), the external URL, the cookie and the files with secrets. Prints for each finding why it matters and what to do, and what to
register at the provider. Run it where the gateway runs.

Sends an authorization request with prompt=none for each redirect URI and a token request with an invalid code, and tries Redis commands
on keys of its own. Prints no secret.

  --as FILE         a JSON file with the claims of a person, to measure the identity headers
  --format json     print the result for programs

Exit codes: 0 no fault, with or without warnings; 1 at least one fault, or the file is invalid; 2 the call is invalid.
`,
  explain: `gatehouse explain [--config FILE] [--as CLAIMS.json | --anonymous] [-H 'Name: value' ...] [--peer ADDRESS] [--at TIME] [METHOD] URL
gatehouse explain --log FILE|- REQUEST_ID
gatehouse explain --preset [NAME]

Decides a request as the gateway does, and prints each step: host, path, upstream, rule and its line in the file,
session, claims, and the headers that the gateway removes and sets. Does not start the gateway and sends no requests.

  --as FILE         a JSON file with the claims of the signed-in person; - is standard input. Default: nobody is signed in
  --header, -H      a header of the request. Default: the headers of a browser that loads a page
  --peer ADDRESS    the address of the client, for trusted_proxies and networks
  --at TIME         when the request arrives, such as 2026-01-05T09:30:00Z. Default: now
  --format json     print the result for programs

With --log, finds what the log says about a request by its request ID, which error pages show, and prints what to do.
With --preset, prints the settings that a preset means, or those of all presets.

Exit codes: 0 the request is explained, whatever the decision; 1 the file is invalid, or the log does not contain the request;
2 the call is invalid.
`,
  sessions: `gatehouse sessions list [--config FILE] [--sub SUB] [--sid SID] [--email ADDRESS] [--upstream NAME] [--format text|json]
gatehouse sessions show [--config FILE] [--format text|json] KEY
gatehouse sessions end  [--config FILE] [--format text|json] KEY | [--sub SUB] [--sid SID] [--email ADDRESS] [--upstream NAME] | --all --yes

Lists, shows and ends sessions of running gateways. Requires Redis. "end" ends sessions on every replica and at the provider.
The result goes to standard output. "end" also writes an audit event for each session to standard error.

  --sub             sessions of the person with this sub
  --sid             sessions with this session ID of the provider
  --email           sessions whose claim email is this address
  --upstream        sessions that began at the external URL of this upstream; with several options, a session must match all
  --all --yes       all sessions; both options are required
  --format json     print the result for programs; a list is one object on each line

Exit codes: 0 success; 1 the session does not exist, Redis does not respond, or the file is invalid; 2 the call is invalid.
`,
  'service-account': `gatehouse service-account [--stdin] NAME

Prints a line for the file of service_accounts to standard output: the name of the account, and the hash of its secret (scrypt). The
secret is generated and shown once, on standard error:

  gatehouse service-account backup >> service-accounts.txt

  --stdin   read the secret from standard input, at least 16 characters, and show none

Exit codes: 0 printed; 1 the secret on standard input cannot be used; 2 the call is invalid.
`,
  health: `gatehouse health [--config FILE]

For the health check of a container: requests /live at admin.listen. Without admin.listen, checks that the gateway responds.

Exit codes: 0 the gateway is healthy; 1 it is not, or the file is invalid; 2 the call is invalid.
`,
  schema: `gatehouse schema

Prints the JSON Schema (draft-07) of the configuration. Editors with the YAML language server complete and check a file whose first
line names the schema:

  gatehouse schema > gateway.schema.json
  # yaml-language-server: $schema=gateway.schema.json

Exit codes: 0 printed; 2 the call is invalid.
`,
  completion: `gatehouse completion bash|zsh|fish|man

Prints a script that completes commands, options and files in a shell, or with man the manual page. For example:

  source <(gatehouse completion bash)                                        in ~/.bashrc
  source <(gatehouse completion zsh)                                         in ~/.zshrc, after compinit
  gatehouse completion fish > ~/.config/fish/completions/gatehouse.fish
  gatehouse completion man | man -l -

Exit codes: 0 printed; 2 the call is invalid.
`,
  demo: `gatehouse demo [--config FILE]

Runs the gateway as "run" does, with a demo provider and a demo application at the addresses that the file names. Loopback only.
If a program listens at the address of the application already, the demo uses that program instead of its own application.

Exit codes: 0 stopped by a signal; 1 the file is invalid, a port cannot be used, or this installation has no demo; 2 the call is invalid.
`,
}
