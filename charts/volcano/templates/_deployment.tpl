{{/* A component: ServiceAccount, Deployment, PodDisruptionBudget and NetworkPolicy.

     root; name: of the objects; app: the label that selects the pods, as in Volcano's chart; key: prefix of its values;
     command: of volcano-py; args; ports: name to number; readiness: a probe; mounts, volumes. */}}
{{- define "volcano.component" -}}
{{- $root := .root -}}
{{- $custom := $root.Values.custom -}}
{{- $replicas := int (get $custom (printf "%s_replicas" .key)) -}}
{{- $labels := dict "app" .app -}}
{{- $podLabels := mergeOverwrite (dict) (deepCopy ($custom.common_labels | default dict)) (deepCopy (get $custom (printf "%s_podLabels" .key) | default dict)) $labels -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "volcano.labels" (dict "root" $root "labels" $labels) | nindent 4 }}
automountServiceAccountToken: false
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "volcano.labels" (dict "root" $root "labels" (mergeOverwrite (deepCopy (get $custom (printf "%s_labels" .key) | default dict)) $labels)) | nindent 4 }}
spec:
  replicas: {{ $replicas }}
  selector:
    matchLabels:
      app: {{ .app }}
  strategy:
    {{- if or (gt $replicas 1) .rolling }}
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: {{ ternary 0 1 (eq $replicas 1) }}
      maxSurge: 1
    {{- else }}
    # Two concurrent pods are only safe with the Lease; Volcano's pods may run without it.
    type: Recreate
    rollingUpdate: null
    {{- end }}
  template:
    metadata:
      labels:
        {{- toYaml $podLabels | nindent 8 }}
      annotations:
        kubectl.kubernetes.io/default-container: {{ .name }}
    spec:
      serviceAccountName: {{ .name }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      priorityClassName: {{ $custom.priority_class_name }}
      terminationGracePeriodSeconds: 40
      {{- with or (get $custom (printf "%s_sc" .key)) $custom.default_sc }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with or (get $custom (printf "%s_ns" .key)) $custom.default_ns }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with or (get $custom (printf "%s_tolerations" .key)) $custom.default_tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with or (get $custom (printf "%s_affinity" .key)) $custom.default_affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if $custom.topology_spread_enable }}
      topologySpreadConstraints:
      {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
      - topologyKey: {{ . }}
        maxSkew: 1
        whenUnsatisfiable: ScheduleAnyway
        labelSelector:
          matchLabels:
            {{- toYaml $labels | nindent 12 }}
      {{- end }}
      {{- end }}
      {{- with $root.Values.basic.image_pull_secret }}
      imagePullSecrets:
      - name: {{ . }}
      {{- end }}
      containers:
      - name: {{ .name }}
        image: {{ include "volcano.image" $root }}
        imagePullPolicy: {{ $root.Values.basic.image_pull_policy }}
        command: [volcano-py, {{ .command }}]
        args:
        {{- toYaml .args | nindent 8 }}
        env:
        - name: POD_IP
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        - name: KUBE_POD_NAMESPACE
          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        - name: HELM_RELEASE_NAME
          value: {{ $root.Release.Name }}
        {{- with .env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        ports:
        {{- range $name, $number := .ports }}
        - name: {{ $name }}
          containerPort: {{ $number }}
        {{- end }}
        startupProbe:
          httpGet: {path: /healthz, port: healthz}
          periodSeconds: 2
          failureThreshold: 60
        livenessProbe:
          httpGet: {path: /healthz, port: healthz}
          periodSeconds: 10
          timeoutSeconds: 5
          failureThreshold: 3
        readinessProbe:
          {{- toYaml .readiness | nindent 10 }}
          periodSeconds: 5
          timeoutSeconds: 5
        {{- with get $custom (printf "%s_resources" .key) | default (include (printf "volcano.resources.%s" .key) $root | fromYaml) }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- with or (get $custom (printf "%s_main_csc" .key)) $custom.default_csc }}
        securityContext:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- with .mounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      volumes:
      - name: tmp
        emptyDir: {}
      {{- with .volumes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
{{- if $custom.pod_disruption_budgets_enable }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "volcano.labels" (dict "root" $root "labels" $labels) | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- toYaml $labels | nindent 6 }}
{{- end }}
{{- if $custom.network_policies_enable }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "volcano.labels" (dict "root" $root "labels" $labels) | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- toYaml $labels | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
  {{- range $name, $number := .ports }}
  {{- if ne $name "healthz" }}
  - ports:
    - port: {{ $number }}
    {{- with get $custom (printf "network_policies_%s_from" $name) }}
    from:
      {{- toYaml . | nindent 6 }}
    {{- end }}
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The Lease of a component, so that it is deleted with the release. (dict "root" $ "name" …) */}}
{{- define "volcano.lease" -}}
{{- if include "volcano.mayOwn" (dict "root" .root "api" "coordination.k8s.io/v1" "kind" "Lease" "name" .name) }}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "volcano.labels" (dict "root" .root) | nindent 4 }}
{{- end }}
{{- end }}

{{/* Role and binding for the Lease and further rules in the release namespace.
     (dict "root" $ "name" … "lease" … "rules" <text>) */}}
{{- define "volcano.role" -}}
{{- $root := .root -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "volcano.labels" (dict "root" $root) | nindent 4 }}
rules:
{{- if .lease }}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, update]
  resourceNames: [{{ .lease }}]
# Needed only if the Lease was deleted; RBAC cannot restrict create to a name.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
{{- end }}
{{- with .rules }}
{{ . | trim }}
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "volcano.labels" (dict "root" $root) | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .name }}}
subjects:
- {kind: ServiceAccount, name: {{ .name }}, namespace: {{ $root.Release.Namespace }}}
{{- end }}

{{/* The ClusterRoleBinding of a component, named as in Volcano's chart. */}}
{{- define "volcano.clusterRoleBinding" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .name }}-role
  labels:
    {{- include "volcano.labels" (dict "root" .root) | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ .name }}}
subjects:
- {kind: ServiceAccount, name: {{ .name }}, namespace: {{ .root.Release.Namespace }}}
{{- end }}

{{/* Requests and limits of a component without values: docs/operations.md has a table of sizes. */}}
{{- define "volcano.resources.scheduler" -}}
{requests: {cpu: 500m, memory: 512Mi}, limits: {memory: 4Gi}}
{{- end }}
{{- define "volcano.resources.controller" -}}
{requests: {cpu: 200m, memory: 256Mi}, limits: {memory: 3Gi}}
{{- end }}
{{- define "volcano.resources.admission" -}}
{requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 512Mi}}
{{- end }}
{{- define "volcano.resources.hypernode_controller" -}}
{requests: {cpu: 50m, memory: 128Mi}, limits: {memory: 1Gi}}
{{- end }}
