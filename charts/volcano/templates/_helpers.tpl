{{/* Names, labels and parts that several objects share. */}}

{{- define "volcano.image" -}}
{{- $i := .Values.image -}}
{{- with $i.registry }}{{ . }}/{{ end }}{{ $i.repository }}{{ if $i.digest }}@{{ $i.digest }}{{ else }}:{{ $i.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Labels of an object: (dict "root" $ "labels" <more labels>). */}}
{{- define "volcano.labels" -}}
{{- $own := dict "app.kubernetes.io/name" "volcano" "app.kubernetes.io/instance" .root.Release.Name "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- toYaml (mergeOverwrite $own (deepCopy (.root.Values.custom.common_labels | default dict)) (deepCopy (.labels | default dict))) }}
{{- end }}

{{- define "volcano.leaderElect" -}}
{{ or .root.Values.custom.leader_elect_enable (gt (int .replicas) 1) }}
{{- end }}

{{- define "volcano.host" -}}
{{ if .Values.custom.bind_to_pod_ip }}$(POD_IP){{ end }}
{{- end }}

{{/* Feature gates as a map or as text. */}}
{{- define "volcano.gates" -}}
{{- if kindIs "map" . -}}
{{- $rows := list -}}
{{- range $name, $on := . }}{{ $rows = append $rows (printf "%s=%v" $name $on) }}{{ end -}}
{{ join "," $rows }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end }}

{{/* Whether an object with this name is missing or belongs to the release; others are not changed.
     (dict "root" $ "api" "v1" "kind" "Secret" "name" …) */}}
{{- define "volcano.mayOwn" -}}
{{- $found := lookup .api .kind .root.Release.Namespace .name -}}
{{- if not $found -}}true
{{- else if eq (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $found) .root.Release.Name -}}true
{{- end -}}
{{- end }}

{{/* A ConfigMap. Values edited in the cluster are kept, unless custom.keep_edited_config is false: helm 4 applies on the
     server, where a different text in a field that kubectl edit has taken over is a conflict.
     (dict "root" $ "name" … "labels" … "data" <map>) */}}
{{- define "volcano.configmap" -}}
{{- $root := .root -}}
{{- $digest := toJson .data | sha256sum -}}
{{- $data := .data -}}
{{- $found := lookup "v1" "ConfigMap" $root.Release.Namespace .name -}}
{{- if and $found $root.Values.custom.keep_edited_config -}}
{{- $rendered := dig "metadata" "annotations" "volcano.sh/rendered" "" $found -}}
{{- if ne $rendered (toJson ($found.data | default dict) | sha256sum) -}}
{{- $data = $found.data | default dict -}}
{{- $digest = $rendered -}}
{{- end -}}
{{- end -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "volcano.labels" (dict "root" $root "labels" .labels) | nindent 4 }}
  annotations:
    volcano.sh/rendered: {{ $digest | quote }}
data:
  {{- toYaml $data | nindent 2 }}
{{- end }}

{{- define "volcano.service" -}}
{{- $root := .root -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "volcano.labels" (dict "root" $root "labels" (dict "app" .app)) | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with $root.Values.service.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
  {{- end }}
  {{- with $root.Values.service.ipFamilies }}
  ipFamilies: {{ toYaml . | nindent 4 }}
  {{- end }}
  type: ClusterIP
  selector:
    app: {{ .app }}
  ports:
  {{- toYaml .ports | nindent 2 }}
{{- end }}

{{- define "volcano.metricsAnnotations" -}}
prometheus.io/scrape: "true"
prometheus.io/path: /metrics
prometheus.io/port: {{ . | quote }}
{{- end }}
