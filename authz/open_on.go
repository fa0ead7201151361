//go:build openbench

package authz

// Open makes this a build that is measured against: it checks nobody and allows everything. It serves loopback alone.
const Open = true
