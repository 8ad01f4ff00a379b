(* weight_norm.v - WN, FOLD: weight normalization, and batch norm folded into the layer before. *)

Require Import base batch_norm.

(* ---- WN: one column of k weights --------------------------------------------------------- *)

Definition dot (n : nat) (v w : nat -> R) : R := ∑ i < n, v i * w i.
(* WN.1: n = |v| = √(∑ᵢ vᵢ²) *)
Definition len (k : nat) (v : nat -> R) : R := sqrt (∑ i < k, v i ^ 2).
(* WN.2: Wᵢ = g·vᵢ/n *)
Definition weight (k : nat) (g : R) (v : nat -> R) (i : nat) : R := g * v i / len k v.

Section Column.
Variables (k : nat) (g : R) (v : nat -> R).
Notation n := (len k v).
Notation W := (weight k g v).
Hypothesis n_pos : 0 < n.

Lemma len_sqr : ∑ i < k, v i ^ 2 = n ^ 2.
Proof.
  unfold len. rewrite <- Rsqr_pow2, Rsqr_sqrt; [reflexivity |].
  apply Sum_nonneg; intros; apply pow2_ge_0.
Qed.

(* WN.2: Wᵢ = g·vᵢ/n: the length of W is |g|, whatever v is. *)
Theorem WN_2 : len k W = Rabs g.
Proof.
  unfold len at 1. rewrite (Sum_lin1 k (g ^ 2 / n ^ 2) (fun i => v i ^ 2))
    by (intros; unfold weight; field; lra).
  rewrite len_sqr. replace (g ^ 2 / n ^ 2 * n ^ 2) with (Rsqr g) by (unfold Rsqr; field; lra).
  apply sqrt_Rsqr_abs.
Qed.

(* WN.3: n = √t·√(∑ᵢ vᵢ·(vᵢ/t)), t = maxᵢ |vᵢ|, or any other t > 0 *)
Theorem WN_3 t : 0 < t -> n = sqrt t * sqrt (∑ i < k, v i * (v i / t)).
Proof.
  intros T. rewrite (Sum_lin1 k (1 / t) (fun i => v i ^ 2)) by (intros; field; lra).
  rewrite <- sqrt_mult; [unfold len; f_equal; field; lra | lra |].
  rewrite len_sqr. apply Rmult_le_pos; [apply Rlt_le, Rdiv_lt_0_compat; lra | apply pow2_ge_0].
Qed.

Lemma along_len p t d : path p t v d ->
  is_derive (fun s => len k (p s)) t ((∑ i < k, v i * d i) / n).
Proof.
  intros [E D]. unfold len at 1. eapply d_eq.
  - apply d_sqrt; [rate |]. rewrite E, len_sqr. apply pow_lt, n_pos.
  - cbv beta. rewrite E. rewrite (Sum_lin1 k 2 (fun i => v i * d i)) by termwise.
    fold (len k v). field. lra.
Qed.

(* WN.5: ∂n/∂vᵢ = vᵢ/n *)
Theorem WN_5 i : (i < k)%nat -> partial (len k) v i (v i / n).
Proof.
  intros H. eapply d_eq; [apply along_len, path_nudge |].
  rewrite (Sum_ext k _ (δ i · v)), Sum_delta by (exact H || termwise). reflexivity.
Qed.

Lemma along_weight p t d : path p t v d ->
  path (fun s => weight k g (p s)) t W
       (fun j => g / n * (d j - (∑ i < k, v i * d i) * v j / n ^ 2)).
Proof.
  intros P. pose proof (along_len p t d P) as Dn. destruct P as [E D].
  split; [rewrite E; reflexivity |]. intros j. unfold weight at 1.
  eapply d_eq; [apply d_div; [rate | rate | rewrite E; lra] |]. cbv beta. rewrite E. field. lra.
Qed.

(* WN.6: dg = ∑ᵢ dWᵢ·vᵢ/n *)
Theorem WN_6 L dW : gradient k L W dW ->
  is_derive (fun g => L (weight k g v)) g (∑ i < k, dW i * v i / n).
Proof.
  intros dL. eapply d_eq; [apply (dL _ _ (fun i => v i / n)) |].
  - split; [reflexivity |]. intros i. unfold weight.
    eapply d_eq; [rate |]. cbv beta. field. lra.
  - apply Sum_ext; intros. field. lra.
Qed.

(* WN.7: ∂Wⱼ/∂vᵢ = (g/n)·(δᵢⱼ − vᵢ·vⱼ/n²) *)
Theorem WN_7 i j : (i < k)%nat ->
  partial (fun v => weight k g v j) v i (g / n * (δ i j - v i * v j / n ^ 2)).
Proof.
  intros H. pose proof (along_weight _ 0 (δ i) (path_nudge v i)) as [_ D].
  eapply d_eq; [apply D |]. cbv beta.
  rewrite (Sum_ext k _ (δ i · v)), Sum_delta by (exact H || termwise). reflexivity.
Qed.

Notation dg dW := (∑ i < k, dW i * v i / n).
Notation dv dW := (fun i => g / n * (dW i - dg dW * v i / n)).

(* WN.8: dvᵢ = ∑ⱼ dWⱼ·∂Wⱼ/∂vᵢ = (g/n)·(dWᵢ − dg·vᵢ/n), for any loss *)
Theorem WN_8 L dW : gradient k L W dW ->
  gradient k (fun v => L (weight k g v)) v (fun i => g / n * (dW i - dg dW * v i / n)).
Proof.
  apply (chain k k L (weight k g) v
           (fun d j => g / n * (d j - (∑ i < k, v i * d i) * v j / n ^ 2))).
  - exact along_weight.
  - intros d. transitivity (g / n * Sum k (d · dW)
      + (- (g / n ^ 3) * ∑ i < k, v i * d i) * ∑ i < k, dW i * v i).
    + apply Sum_lin2. intros; cbv beta. field. lra.
    + symmetry. rewrite (Sum_lin1 k (1 / n) (fun i => dW i * v i) (fun i => dW i * v i / n))
        by (intros; field; lra).
      transitivity (g / n * Sum k (d · dW)
        + (- (g / n ^ 3) * ∑ i < k, dW i * v i) * ∑ i < k, v i * d i).
      * apply Sum_lin2. intros; cbv beta. field. lra.
      * ring.
Qed.

(* WN.9: ∑ᵢ dvᵢ·vᵢ = 0 *)
Theorem WN_9 dW : ∑ i < k, dv dW i * v i = 0.
Proof.
  rewrite (Sum_lin1 k (1 / n) (fun i => dW i * v i) (fun i => dW i * v i / n))
    by (intros; field; lra).
  set (c := Sum k (fun i => dW i * v i)).
  transitivity (g / n * c + (- (g / n ^ 3) * c) * ∑ i < k, v i ^ 2).
  - unfold c at 2. apply Sum_lin2. intros; cbv beta. field. lra.
  - rewrite len_sqr. field. lra.
Qed.

(* WN.10: |v − η·dv|² = |v|² + η²·|dv|², by Pythagoras, wherever WN.9 holds *)
Theorem WN_10 η d : ∑ i < k, d i * v i = 0 ->
  ∑ i < k, (v i - η * d i) ^ 2 = ∑ i < k, v i ^ 2 + η ^ 2 * ∑ i < k, d i ^ 2.
Proof.
  intros O. rewrite (Sum_lin3 k 1 (-2 * η) (η ^ 2) (fun i => v i ^ 2) (d · v) (fun i => d i ^ 2))
    by termwise.
  rewrite O. ring.
Qed.
End Column.

(* WN.4: g = 1/σ, b = −μ/σ standardizes the outputs z of a batch. *)
Theorem WN_4 N z σ : (0 < N)%nat -> 0 < σ -> σ ^ 2 = var N z ->
  let y := fun i => 1 / σ * z i + - mean N z / σ in mean N y = 0 /\ var N y = 1.
Proof.
  intros H S V y. assert (m : mean N y = 0).
  { rewrite (mean_lin2 N (1 / σ) (- mean N z / σ) z (fun _ => 1))
      by (intros; unfold y; field; lra).
    rewrite mean_const by exact H. field. lra. }
  split; [exact m |]. unfold var at 1. rewrite m.
  rewrite (Sum_lin1 N (1 / σ ^ 2) (fun i => (z i - mean N z) ^ 2))
    by (intros; unfold y; field; lra).
  transitivity (var N z / σ ^ 2); [unfold var; field; split; try apply count_ne0, H; lra |].
  rewrite <- V. field. lra.
Qed.

(* ---- Batch norm is weight norm in another metric ----------------------------------------- *)

(* N rows x j of k inputs, weights w *)
Section Metric.
Variables (N k : nat) (x : nat -> nat -> R) (w : nat -> R) (ε γ β : R).
Hypothesis N_pos : (0 < N)%nat.
Definition z (w : nat -> R) (j : nat) : R := ∑ i < k, x j i * w i.
Definition m (i : nat) : R := mean N (fun j => x j i).
(* m is the row of the inputs' means, cov their covariance S. *)
Definition cov (a b : nat) : R := mean N (fun j => (x j a - m a) * (x j b - m b)).
Definition Sw (w : nat -> R) (a : nat) : R := ∑ b < k, cov a b * w b.
Definition wSw (w : nat -> R) : R := ∑ a < k, w a * Sw w a.

Lemma mean_z u : mean N (z u) = ∑ i < k, m i * u i.
Proof.
  unfold mean, z, m. rewrite Sum_swap. unfold Rdiv. rewrite Rmult_comm, <- Sum_scal.
  apply Sum_ext; intros i. unfold mean.
  rewrite (Sum_lin1 N (u i) (fun j => x j i)) by termwise. unfold Rdiv; ring.
Qed.
Lemma z_dev u j : z u j - mean N (z u) = ∑ i < k, (x j i - m i) * u i.
Proof. rewrite mean_z. unfold z. rewrite <- Sum_minus. apply Sum_ext; termwise. Qed.

(* The covariance of the outputs of two columns of weights *)
Lemma covariance c u :
  (∑ j < N, c j * (z u j - mean N (z u))) = ∑ i < k, (∑ j < N, c j * (x j i - m i)) * u i.
Proof.
  rewrite (Sum_ext N _ (fun j => ∑ i < k, c j * (x j i - m i) * u i)).
  - rewrite Sum_swap. apply Sum_ext; intros i. rewrite Rmult_comm, <- Sum_scal.
    apply Sum_ext; termwise.
  - intros j. rewrite z_dev, <- Sum_scal. apply Sum_ext; termwise.
Qed.
Lemma Sw_is u a : Sw u a = (∑ j < N, (x j a - m a) * (z u j - mean N (z u))) / N.
Proof.
  rewrite covariance. unfold Sw, Rdiv. rewrite Rmult_comm, <- Sum_scal. apply Sum_ext; intros b.
  unfold cov, mean, Rdiv. ring.
Qed.

(* WN.11: S = ⟨(x − m)ᵀ·(x − m)⟩, σ² = wᵀ·S·w *)
Theorem WN_11 : var N (z w) = wSw w.
Proof.
  unfold wSw. rewrite (Sum_ext k _ (fun a => 1 / N *
    ((∑ j < N, (z w j - mean N (z w)) * (x j a - m a)) * w a))).
  - rewrite Sum_scal, <- (covariance (fun j => z w j - mean N (z w))). unfold var.
    rewrite (Sum_ext N _ (fun j => (z w j - mean N (z w)) * (z w j - mean N (z w)))) by termwise.
    field. apply count_ne0, N_pos.
  - intros a. rewrite Sw_is.
    rewrite (Sum_ext N _ (fun j => (z w j - mean N (z w)) * (x j a - m a))) by termwise.
    field. apply count_ne0, N_pos.
Qed.

Hypothesis root : 0 < wSw w + ε.

(* WN.12: BN(x·w) = x·ŵ + (β − m·ŵ), ŵ = γ·w/√(wᵀ·S·w + ε) *)
Theorem WN_12 j : let u := fun i => γ * w i / sqrt (wSw w + ε) in
  bn N ε γ β (z w) j = z u j + (β - ∑ i < k, m i * u i).
Proof.
  intros u. pose proof (sqrt_lt_R0 _ root). rewrite <- mean_z.
  transitivity (z u j - mean N (z u) + β); [| ring]. rewrite z_dev.
  rewrite (Sum_lin1 k (γ / sqrt (wSw w + ε)) (fun i => (x j i - m i) * w i))
    by (intros; unfold u; field; lra).
  rewrite <- z_dev. unfold bn, normalized, rstd. rewrite WN_11. field. lra.
Qed.

(* WN.13: dw = γ·r·(a − r²·(a·w)·S·w), a = ∑ⱼ dyⱼ·(xⱼ − m)ᵀ, r = 1/√(σ² + ε) *)
Definition a_of (dy : nat -> R) (i : nat) : R := ∑ j < N, dy j * (x j i - m i).

Theorem WN_13 L dy : let r := 1 / sqrt (wSw w + ε) in let a := a_of dy in
  gradient N L (bn N ε γ β (z w)) dy ->
  gradient k (fun w => L (bn N ε γ β (z w))) w
    (fun i => γ * r * (a i - r ^ 2 * dot k a w * Sw w i)).
Proof.
  intros r a dL. pose proof root as root'. rewrite <- WN_11 in root'.
  assert (Er : rstd N ε (z w) = r) by (unfold rstd, r; rewrite WN_11; reflexivity).
  pose proof (BN_19 N ε γ β (z w) N_pos root' L dy dL) as G. rewrite Er in G.
  intros p t d [E D].
  assert (Pz : path (fun s => z (p s)) t (z w) (z d)).
  { split; [rewrite E; reflexivity |]. intros j. unfold z. eapply d_eq; [rate |].
    apply Sum_ext; termwise. }
  eapply d_eq; [apply (G _ t (z d) Pz) |].
  pose proof (count_ne0 N N_pos) as N0.
  (* both sides, by the deviations of z d *)
  assert (Aw : forall u, dot k a u = ∑ j < N, dy j * (z u j - mean N (z u))).
  { intros u. rewrite covariance. reflexivity. }
  assert (B : forall u, ∑ i < k, u i * Sw w i
      = (∑ j < N, (z w j - mean N (z w)) * (z u j - mean N (z u))) / N).
  { intros u. rewrite covariance. unfold Rdiv. rewrite Rmult_comm, <- Sum_scal.
    apply Sum_ext; intros i. rewrite Sw_is.
    rewrite (Sum_ext N (fun j => (z w j - mean N (z w)) * (x j i - m i))
      (fun j => (x j i - m i) * (z w j - mean N (z w)))) by termwise.
    unfold Rdiv; ring. }
  transitivity (γ * r * dot k a d + (- γ * r ^ 3 * dot k a w) * ∑ i < k, d i * Sw w i).
  - rewrite B, !Aw.
    set (zd := mean N (z d)).
    assert (X : ∑ j < N, z d j * (dy j - mean N dy) = ∑ j < N, dy j * (z d j - zd)).
    { transitivity (1 * Sum N (dy · z d) + (- mean N dy) * Sum N (z d)).
      - apply Sum_lin2; termwise.
      - symmetry. transitivity (1 * Sum N (dy · z d) + (- zd) * Sum N dy).
        + apply Sum_lin2; termwise.
        + unfold zd, mean. field. exact N0. }
    assert (Y : ∑ j < N, z d j * (z w j - mean N (z w))
                = ∑ j < N, (z w j - mean N (z w)) * (z d j - zd)).
    { transitivity (1 * ∑ j < N, (z w j - mean N (z w)) * (z d j - zd)
                    + zd * ∑ j < N, (z w j - mean N (z w))).
      - apply Sum_lin2; termwise.
      - rewrite Sum_dev by exact N_pos. ring. }
    assert (Z : mean N (dy · normalized N ε (z w))
                = r / N * ∑ j < N, dy j * (z w j - mean N (z w))).
    { unfold mean at 1. rewrite (Sum_lin1 N r (fun j => dy j * (z w j - mean N (z w)))).
      - field. exact N0.
      - intros j. unfold normalized. rewrite Er. ring. }
    rewrite <- X, Z. set (q := Sum N (fun j => dy j * (z w j - mean N (z w)))) in *.
    rewrite <- Y.
    transitivity (γ * r * (∑ j < N, z d j * (dy j - mean N dy))
      + (- γ * r ^ 3 * q / N) * ∑ j < N, z d j * (z w j - mean N (z w))).
    + apply Sum_lin2. intros j. unfold normalized. rewrite Er. field. exact N0.
    + field. exact N0.
  - symmetry. unfold dot at 2. apply Sum_lin2. intros i. ring.
Qed.

(* WN.14: ∑ᵢ dwᵢ·wᵢ = γ·r·ε·r²·(a·w) *)
Theorem WN_14 a : let r := 1 / sqrt (wSw w + ε) in
  ∑ i < k, γ * r * (a i - r ^ 2 * dot k a w * Sw w i) * w i = γ * r * ε * r ^ 2 * dot k a w.
Proof.
  intros r. transitivity (γ * r * dot k a w + (- γ * r ^ 3 * dot k a w) * wSw w).
  - unfold dot at 2, wSw. apply Sum_lin2. intros; ring.
  - assert (Q : r ^ 2 * (wSw w + ε) = 1).
    { unfold r. pose proof (sqrt_lt_R0 _ root).
      rewrite <- (sqrt_sqrt (wSw w + ε)) at 2 by lra. field; lra. }
    transitivity (γ * r * dot k a w * (1 - r ^ 2 * wSw w)); [ring |].
    replace (1 - r ^ 2 * wSw w) with (ε * r ^ 2) by lra. ring.
Qed.
End Metric.

(* ---- FOLD -------------------------------------------------------------------------------- *)

Section Fold.
Variables (K : nat) (W x : nat -> R) (b m u ε γ β : R).
(* FOLD.1 and FOLD.2: W′ₖ = a·Wₖ, a = γ/√(u + ε); b′ = a·(b − m) + β *)
Notation a := (γ / sqrt (u + ε)).
Notation W' := (fun k => a * W k).
Notation b' := (a * (b - m) + β).

(* FOLD.3: ∑ₖ xₖ·W′ₖ + b′ = γ·(∑ₖ xₖ·Wₖ + b − m)/√(u + ε) + β *)
Theorem FOLD_3 : ∑ k < K, x k * W' k + b' = γ * (∑ k < K, x k * W k + b - m) / sqrt (u + ε) + β.
Proof.
  rewrite (Sum_lin1 K a (fun k => x k * W k)) by termwise. unfold Rdiv. ring.
Qed.

(* FOLD.4: |error of y| ≤ η·(∑ₖ |xₖ·W′ₖ| + |b′|), where W′ and b′ are rounded, once each *)
Theorem FOLD_4 η e e0 : (forall k, Rabs (e k) <= η) -> Rabs e0 <= η ->
  Rabs ((∑ k < K, x k * (W' k * (1 + e k)) + b' * (1 + e0)) - (∑ k < K, x k * W' k + b'))
  <= η * (∑ k < K, Rabs (x k * W' k) + Rabs b').
Proof.
  intros He H0. apply Rle_trans with (Rabs (∑ k < K, x k * W' k * e k + b' * e0)).
  { apply Req_le. f_equal.
    rewrite (Sum_lin2 K 1 1 (fun k => x k * W' k) (fun k => x k * W' k * e k)
               (fun k => x k * (W' k * (1 + e k)))) by termwise. ring. }
  eapply Rle_trans; [apply Rabs_triang |].
  rewrite (Rmult_plus_distr_l η), <- (Sum_scal K η). apply Rplus_le_compat.
  - eapply Rle_trans; [apply Sum_abs |]. apply Sum_le; intros k _. rewrite Rabs_mult.
    rewrite Rmult_comm. apply Rmult_le_compat_r; [apply Rabs_pos | apply He].
  - rewrite Rabs_mult, Rmult_comm. apply Rmult_le_compat_r; [apply Rabs_pos | exact H0].
Qed.
End Fold.
