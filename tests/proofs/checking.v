(* checking.v - GC, RNG: differences that check a gradient, and two facts about random numbers. *)

Require Import base family.

(* ---- GC: F k is the k-th derivative of the loss F 0 -------------------------------------- *)

Section Differences.
Variables (F : nat -> R -> R) (θ h : R).
Hypothesis F_is : forall k s, is_derive (F k) s (F (S k) s).
Hypothesis h_pos : 0 < h.
Notation L := (F 0%nat).

Lemma derivatives f (G : nat -> R -> R) : (forall s, f s = G 0%nat s) ->
  (forall k s, is_derive (G k) s (G (S k) s)) -> forall k s, Derive_n f k s = G k s.
Proof.
  intros E D. induction k; intros s; [apply E |]. simpl.
  rewrite (Derive_ext _ (G k)) by exact IHk. apply is_derive_unique, D.
Qed.
Lemma taylor (G : nat -> R -> R) n x y : (forall k s, is_derive (G k) s (G (S k) s)) -> x < y ->
  exists c, x < c < y /\ G 0%nat y =
    sum_f_R0 (fun m => (y - x) ^ m / INR (fact m) * G m x) n
    + (y - x) ^ S n / INR (fact (S n)) * G (S n) c.
Proof.
  intros D H. pose proof (derivatives (G 0%nat) G (fun s => eq_refl) D) as E.
  destruct (Taylor_Lagrange (G 0%nat) n x y H) as (c & C & T).
  - intros s _ [| k] _; [exact I |]. simpl. apply (ex_derive_ext (G k)).
    + intros; symmetry; apply E.
    + exists (G (S k) s). apply D.
  - exists c. split; [exact C |]. rewrite T, E. f_equal. apply sum_eq.
    intros; rewrite E; reflexivity.
Qed.

(* The value at θ − h is that of the mirrored function at θ + h. *)
Definition mirrored (k : nat) (s : R) : R := (- 1) ^ k * F k (2 * θ - s).
Lemma mirrored_is k s : is_derive (mirrored k) s (mirrored (S k) s).
Proof.
  unfold mirrored. eapply d_eq.
  - apply d_scal, (d_comp (F k) (fun s => 2 * θ - s)); [apply F_is | rate].
  - simpl. ring.
Qed.

(* GC.1: D(h) = (L(θ + h) − L(θ − h))/(2·h) *)
Definition central (h : R) : R := (L (θ + h) - L (θ - h)) / (2 * h).
(* GC.3: R(h) = (4·D(h/2) − D(h))/3 *)
Definition richardson (h : R) : R := (4 * central (h / 2) - central h) / 3.
(* GC.7: J(h) = (L(θ + h) − L(θ))/h − (L(θ) − L(θ − h))/h *)
Definition jump (h : R) : R := (L (θ + h) - L θ) / h - (L θ - L (θ - h)) / h.

Lemma both_sides n k : 0 < k -> exists c d, θ < c < θ + k /\ θ - k < d < θ /\
  L (θ + k) = sum_f_R0 (fun m => k ^ m / INR (fact m) * F m θ) n
              + k ^ S n / INR (fact (S n)) * F (S n) c /\
  L (θ - k) = sum_f_R0 (fun m => k ^ m / INR (fact m) * ((- 1) ^ m * F m θ)) n
              + k ^ S n / INR (fact (S n)) * ((- 1) ^ S n * F (S n) d).
Proof.
  intros K. destruct (taylor F n θ (θ + k) F_is ltac:(lra)) as (c & C & Tc).
  destruct (taylor mirrored n θ (θ + k) mirrored_is ltac:(lra)) as (e & E & Te).
  exists c, (2 * θ - e). split; [exact C |]. split; [lra |].
  replace (θ + k - θ) with k in * by ring. split; [exact Tc |].
  unfold mirrored in Te. rewrite pow_O, Rmult_1_l in Te.
  replace (2 * θ - (θ + k)) with (θ - k) in Te by ring. rewrite Te. f_equal.
  apply sum_eq. intros m _. replace (2 * θ - θ) with θ by ring. reflexivity.
Qed.

Lemma central_error B k : 0 < k <= h ->
  (forall s, θ - h <= s <= θ + h -> Rabs (F 5 s) <= B) ->
  Rabs (central k - (F 1 θ + k ^ 2 / 6 * F 3 θ)) <= B * k ^ 4 / 120.
Proof.
  intros K H. destruct (both_sides 4 k) as (c & d & C & E & P & N); [lra |].
  assert (central k - (F 1 θ + k ^ 2 / 6 * F 3 θ) = k ^ 4 / 240 * (F 5 c + F 5 d)) as ->.
  { unfold central. rewrite P, N. simpl. field. lra. }
  pose proof (Rabs_le_between (F 5 c) B) as [Bc _].
  pose proof (Rabs_le_between (F 5 d) B) as [Bd _].
  specialize (Bc (H c ltac:(lra))). specialize (Bd (H d ltac:(lra))).
  pose proof (pow_lt k 4 ltac:(lra)). apply Rabs_le. split; nra.
Qed.

(* GC.2: D(h) = L′ + (h²/6)·L‴ + O(h⁴): at most h⁴/120 times the fifth derivative *)
Theorem GC_2 B : (forall s, θ - h <= s <= θ + h -> Rabs (F 5 s) <= B) ->
  Rabs (central h - (F 1 θ + h ^ 2 / 6 * F 3 θ)) <= B * h ^ 4 / 120.
Proof. intros H. apply (central_error B h); [lra | exact H]. Qed.

(* GC.3: R(h) = (4·D(h/2) − D(h))/3 = L′ + O(h⁴): at most h⁴/288 times the fifth derivative *)
Theorem GC_3 B : (forall s, θ - h <= s <= θ + h -> Rabs (F 5 s) <= B) ->
  Rabs ((4 * central (h / 2) - central h) / 3 - F 1 θ) <= B * h ^ 4 / 288.
Proof.
  intros H. pose proof (central_error B h ltac:(lra) H) as A.
  pose proof (central_error B (h / 2) ltac:(lra) H) as C.
  apply Rabs_le_between in A, C. apply Rabs_le.
  replace ((h / 2) ^ 2) with (h ^ 2 / 4) in C by field.
  replace ((h / 2) ^ 4) with (h ^ 4 / 16) in C by field. split; lra.
Qed.

(* GC.7: J(h) = (L(θ + h) − L(θ))/h − (L(θ) − L(θ − h))/h = h·L″ + O(h³) *)
Theorem GC_7 B : (forall s, θ - h <= s <= θ + h -> Rabs (F 4 s) <= B) ->
  Rabs ((L (θ + h) - L θ) / h - (L θ - L (θ - h)) / h - h * F 2 θ) <= B * h ^ 3 / 12.
Proof.
  intros H. destruct (both_sides 3 h) as (c & d & C & E & P & N); [lra |].
  assert ((L (θ + h) - L θ) / h - (L θ - L (θ - h)) / h - h * F 2 θ
          = h ^ 3 / 24 * (F 4 c + F 4 d)) as ->.
  { rewrite P, N. simpl. field. lra. }
  pose proof (Rabs_le_between (F 4 c) B) as [Bc _].
  pose proof (Rabs_le_between (F 4 d) B) as [Bd _].
  specialize (Bc (H c ltac:(lra))). specialize (Bd (H d ltac:(lra))).
  pose proof (pow_lt h 3 ltac:(lra)). apply Rabs_le. split; nra.
Qed.
End Differences.

(* ---- RNG --------------------------------------------------------------------------------- *)

(* RNG.4: u mod n, drawn again while u < 2³² mod n: of the u that are left, r to r + q·n − 1 with
   r = 2³² mod n and q = ⌊2³²/n⌋, every residue j has q. *)
Lemma residues n r j : (0 < n)%nat -> (j < n)%nat -> ∑ u < n, δ j ((r + u) mod n) = 1.
Proof.
  intros N J. induction r.
  - rewrite (Sum_ext_lt n _ (δ j)); [apply Sum_delta_one, J |]. intros u U.
    rewrite Nat.mod_small by exact U. reflexivity.
  - rewrite <- IHr. pose proof (Sum_telescope n (fun u => δ j ((r + u) mod n))) as T.
    cbv beta in T. rewrite Sum_minus in T.
    replace ((r + n) mod n)%nat with ((r + 0) mod n)%nat in T.
    + rewrite (Sum_ext n (fun u => δ j ((S r + u) mod n)) (fun u => δ j ((r + S u) mod n))).
      * lra.
      * intros u. do 2 f_equal. lia.
    + rewrite Nat.add_0_r. symmetry. rewrite <- (Nat.mul_1_l n) at 1. apply Nat.mod_add. lia.
Qed.
Theorem RNG_4 n q r j : (0 < n)%nat -> (j < n)%nat -> ∑ u < q * n, δ j ((r + u) mod n) = q.
Proof.
  intros N J. rewrite Sum_flat. rewrite (Sum_ext q _ (fun _ => 1)).
  - rewrite Sum_const. ring.
  - intros c. rewrite <- (residues n r j N J). apply Sum_ext; intros s. f_equal.
    replace (r + (c * n + s))%nat with (r + s + c * n)%nat by lia. apply Nat.mod_add. lia.
Qed.

(* RNG.6: z₁ = a·√(−2·(ln w)/w), z₂ = b·√(−2·(ln w)/w), w = a² + b² < 1: the squared distance
   from the origin is −2·ln w, that of two independent normal numbers for a uniform w. *)
Theorem RNG_6 a b : let w := a ^ 2 + b ^ 2 in 0 < w < 1 ->
  (a * sqrt (- 2 * ln w / w)) ^ 2 + (b * sqrt (- 2 * ln w / w)) ^ 2 = - 2 * ln w.
Proof.
  intros w W. assert (N : ln w < 0) by (rewrite <- ln_1; apply ln_increasing; lra).
  assert (P : 0 <= - 2 * ln w / w) by (apply Rlt_le, Rdiv_lt_0_compat; lra).
  rewrite !Rpow_mult_distr. replace (sqrt (- 2 * ln w / w) ^ 2) with (- 2 * ln w / w)
    by (rewrite <- Rsqr_pow2, Rsqr_sqrt; auto).
  transitivity ((a ^ 2 + b ^ 2) * (- 2 * ln w / w)); [ring |]. fold w. field. lra.
Qed.
