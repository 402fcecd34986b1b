// Writes types.json: what Go's encoders know about the built-in Kubernetes types and OpenAPI does not say:
// which fields are pointers, omitted when empty, inlined, their protobuf numbers and patch strategies.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"sort"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

func name(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	if len(parts) < 2 {
		return t.Name()
	}
	return strings.Join(parts[len(parts)-2:], ".") + "." + t.Name()
}

var special = map[string]string{
	"meta.v1.Time": "time", "meta.v1.MicroTime": "microtime", "meta.v1.Duration": "duration",
	"api.resource.Quantity": "quantity", "util.intstr.IntOrString": "intstr",
	"pkg.runtime.RawExtension": "raw", "meta.v1.FieldsV1": "raw", "apiextensions.v1.JSON": "any",
	"apiextensions.v1.JSONSchemaPropsOrBool": "any", "apiextensions.v1.JSONSchemaPropsOrArray": "any",
	"apiextensions.v1.JSONSchemaPropsOrStringArray": "any",
}

type field struct {
	Name, Type    string
	Flags         string
	Number        int
	Strategy, Key string
}

var out = map[string][][]any{}

func typeOf(t reflect.Type) string {
	if s, ok := special[name(t)]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + typeOf(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + typeOf(t.Elem())
	case reflect.Map:
		return "{}" + typeOf(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32:
		return "int32"
	case reflect.Int64, reflect.Int:
		return "int64"
	case reflect.Float64:
		return "double"
	case reflect.Struct:
		visit(t)
		return name(t)
	case reflect.Interface:
		return "raw"
	}
	return "unknown " + t.String()
}

func visit(t reflect.Type) {
	n := name(t)
	if _, ok := out[n]; ok {
		return
	}
	out[n] = [][]any{}
	rows := [][]any{}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" || f.Name == "TypeMeta" || !f.IsExported() {
			continue
		}
		parts := strings.Split(tag, ",")
		flags := ""
		for _, p := range parts[1:] {
			switch p {
			case "omitempty":
				flags += "e"
			case "omitzero":
				flags += "z"
			case "inline":
				flags += "i"
			}
		}
		if f.Anonymous && parts[0] == "" && !strings.Contains(flags, "i") {
			flags += "i"
		}
		num := 0
		if p := f.Tag.Get("protobuf"); p != "" {
			for _, c := range strings.Split(p, ",")[1] {
				num = num*10 + int(c-'0')
			}
		}
		row := []any{parts[0], typeOf(f.Type), flags, num}
		if s := f.Tag.Get("patchStrategy"); s != "" {
			row = append(row, s)
			if k := f.Tag.Get("patchMergeKey"); k != "" {
				row = append(row, k)
			}
		}
		rows = append(rows, row)
	}
	out[n] = rows
}

func main() {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionv1.AddToScheme, admissionregistrationv1.AddToScheme,
		appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, autoscalingv1.AddToScheme,
		autoscalingv2.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme,
		discoveryv1.AddToScheme, eventsv1.AddToScheme, networkingv1.AddToScheme, nodev1.AddToScheme,
		policyv1.AddToScheme, rbacv1.AddToScheme, resourcev1.AddToScheme, schedulingv1.AddToScheme,
		schedulingv1alpha2.AddToScheme,
		storagev1.AddToScheme, certificatesv1.AddToScheme, flowcontrolv1.AddToScheme,
		apiregistrationv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for _, t := range s.AllKnownTypes() {
		if t.Kind() == reflect.Struct && !strings.HasSuffix(t.Name(), "List") {
			typeOf(t)
		}
	}
	names := []string{}
	for n := range out {
		names = append(names, n)
	}
	sort.Strings(names)
	var b strings.Builder
	b.WriteString("{\n")
	for i, n := range names {
		enc, _ := json.Marshal(out[n])
		b.WriteString("\"" + n + "\":" + string(enc))
		if i < len(names)-1 {
			b.WriteString(",")
		}
		b.WriteString("\n")
	}
	b.WriteString("}\n")
	os.WriteFile(os.Args[1], []byte(b.String()), 0o644)
}
