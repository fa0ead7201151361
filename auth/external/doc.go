// Package external checks the tokens of identity providers: it reads their keys, verifies, and says whom a token names and
// which roles its groups stand for. Who that is among our principals is auth's.
package external
