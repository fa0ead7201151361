package catalog

import (
	"slices"
	"strings"

	"catalogd/internal/fault"
)

// steeringPrefixes are properties that clients merge into their file layer's settings: whoever may set them on a
// table, or on a warehouse, could send other people's readers to a store of his own.
var steeringPrefixes = []string{
	"s3.", "client.", "gcs.", "adls.", "adlfs.", "oss.", "hdfs.", "hf.", "header.", "signer.",
}

// steeringProperties are the same, as whole names.
var steeringProperties = []string{"io-impl", "py-io-impl", "token", "uri", "credential"}

// sessionPrefixes and sessionProperties would, in a client's configuration, change whom it talks to, as whom, or what
// code it runs; this server's own answers are among them.
var sessionPrefixes = []string{
	"rest.", "auth.", "oauth2", "ssl", "hadoop.", "fs.", "lock.", "encryption.kms",
	"http-client.", "ecs.", "kms.", "glue.", "dynamodb.", "s3tables.", "aws.", "azure.", "jdbc.",
}

var sessionProperties = []string{
	"prefix", "warehouse", "namespace-separator", "scope", "audience", "resource", "token-exchange-enabled", "type",
}

// steers tells whether a property would steer the storage access of whoever reads it. Case is no way around.
func steers(name string) bool {
	return named(name, steeringProperties, steeringPrefixes)
}

// takesOver tells whether a client that is given the property would talk to somebody else, or run other code.
func takesOver(name string) bool {
	return steers(name) || named(name, sessionProperties, sessionPrefixes) || loadsCode(name)
}

// loadsCode tells whether a property names a class or a module that clients load, as `io-impl`,
// `write.location-provider.impl` and `write.py-location-provider.impl` do.
func loadsCode(name string) bool {
	lower := strings.ToLower(strings.TrimSpace(name))
	return strings.HasSuffix(lower, "-impl") || strings.HasSuffix(lower, ".impl")
}

// isPlainName tells whether a name is printable ASCII without spaces around it: what looks like another name, or ends a
// line, is no setting of any client.
func isPlainName(name string) bool {
	for i := range len(name) {
		if name[i] < ' ' || name[i] > '~' {
			return false
		}
	}
	return strings.TrimSpace(name) == name
}

func named(name string, names, prefixes []string) bool {
	lower := strings.ToLower(strings.TrimSpace(name))
	return slices.Contains(names, lower) ||
		slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(lower, prefix) })
}

// checkProperties refuses properties of tables and views that steer clients' file layers, and those that make every
// client that opens the table load code which whoever may write to it has chosen.
func checkProperties(properties map[string]string) error {
	if err := checkSteering(properties); err != nil {
		return err
	}
	for name := range properties {
		if loadsCode(name) {
			return fault.New(fault.BadRequest, "property %q is refused: %s", name, codeMessage)
		}
	}
	return nil
}

// codeMessage is why no table may name code.
const codeMessage = "it names code that every client of the table or view would load; set it in the configuration of those " +
	"clients that have the code"

// checkSteering is checkProperties as it was before classes of location providers were refused: tables that got one
// then are still read.
func checkSteering(properties map[string]string) error {
	for name := range properties {
		if steers(name) {
			return fault.New(fault.BadRequest,
				"property %q is refused: it would steer the storage access of everybody who reads the table or view", name)
		}
	}
	return nil
}
