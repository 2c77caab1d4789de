{{- define "cutlist.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end }}

{{- define "cutlist.selector" -}}
app.kubernetes.io/name: cutlist
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "cutlist.labels" -}}
{{ include "cutlist.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- /* Not those of the controller, whose selector would take these pods for its own. */ -}}
{{- define "cutlist.reviewSelector" -}}
app.kubernetes.io/name: cutlist-review
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "cutlist.reviewLabels" -}}
{{ include "cutlist.reviewSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}
