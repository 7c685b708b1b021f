//go:build tools

// Package tools pins the helm command that the local cluster runs.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
