{{/* Name of the operator's objects. */}}
{{- define "coterie.name" -}}
{{- if contains "coterie" .Release.Name -}}
{{- printf "%s-operator" .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-coterie-operator" .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Name of cluster-wide objects: two releases in two namespaces do not clash. */}}
{{- define "coterie.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "coterie.name" .) -}}
{{- end -}}

{{- define "coterie.selector" -}}
app.kubernetes.io/name: coterie-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "coterie.labels" -}}
{{ include "coterie.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}
